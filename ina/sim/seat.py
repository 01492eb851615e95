"""Where a rank sits, and what its host costs it."""

from __future__ import annotations

from dataclasses import dataclass

from ina.extension import sim as native
from ina.host.options import WorkerOptions
from ina.protocol.peer import Peer
from ina.sim.own_aggregator import OwnAggregator

OPTIONS = WorkerOptions(timeout_s=60.0)
"""Of a rank that is told no others."""


@dataclass(frozen=True)
class Seat:
    """A rank of a job, and what it asks the controller for."""

    job: str
    rank: int
    world_size: int
    host: native.Host
    own: Peer
    options: WorkerOptions = OPTIONS
    wraps_after: int = 0
    """Sequence numbers, or a few more, of each mapping: then they wrap. 0: they begin at 0."""
    shares_results: bool = False
    """It takes results by IP multicast where the controller offers them."""
    aggregator: OwnAggregator | None = None
    """Of the job, that it runs if it is rank 0 and the controller has none."""
    switch_port: int = 0
    """Of the switch, as it tells the controller; 0: it does not know."""
    packet_cost_ns: int = 0
    """Of its processor, to send or to receive one;"""
    kibibyte_cost_ns: int = 0
    """and for what is in it."""
    buffer_bytes: int = 32 << 20
    """Of its socket; a frame that finds it full is dropped."""
    trains: bool = False
    """Packets go in trains that no queue divides, as with GSO."""
    wake_ns: int = 0
    """Until a processor that has slept is at work, at least;"""
    wake_jitter_ns: int = 0
    """and on average so much more."""
