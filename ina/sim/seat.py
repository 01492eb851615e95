"""Where a rank sits, what its host costs it, and the native worker that a granted place becomes."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address

from ina.congestion import Congestion
from ina.extension import sim as native
from ina.extension.host import RtoLimits, WorkerConfig
from ina.host.manner import Manner
from ina.host.ticket import Ticket
from ina.protocol.serial import SERIAL_BITS
from ina.rpc import controller_pb2 as pb2
from ina.sim.own_aggregator import OwnAggregator


@dataclass(frozen=True)
class Seat:
    """A rank of a job, and what it asks the controller for."""

    job: str
    rank: int
    world_size: int
    host: native.Host
    address: IPv4Address
    udp_port: int
    timeout_s: float = 60.0
    """For joining."""
    op_timeout_s: float = 30.0
    """Without any result for so long, it gives up."""
    slots: int = 0
    """0: the controller's default."""
    wraps_after: int = 0
    """Sequence numbers, or a few more, of each mapping: then they wrap. 0: they begin at 0."""
    tenant: str = ""
    priority: int = 0
    mode: str = ""
    """Empty: the controller's default."""
    aggregator: OwnAggregator | None = None
    """Of the job, that it runs if it is rank 0 and the controller has none."""
    token: str = ""
    verify: str = ""
    """How the job's sums are; empty: as the controller has it."""
    shares_results: bool = False
    """It takes results by IP multicast where the controller offers them."""
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
    congestion: Congestion | None = None
    """How many packets are in flight; None: as the controller says."""


def open_worker(
    network: native.Network, name: str, seat: Seat, manner: Manner, ticket: Ticket,
    created: pb2.CreateJobReply, joined: pb2.JoinReply,
) -> native.Worker:  # fmt: skip
    """The worker of a place that was granted.

    Raises ValueError: a number is out of range; CongestionError: there is no such window.
    """
    setup = native.WorkerSetup(
        own=(int(seat.address), seat.udp_port),
        to=(int(IPv4Address(ticket.switch[0])), ticket.switch[1]),
        packet_cost_ns=seat.packet_cost_ns,
        kibibyte_cost_ns=seat.kibibyte_cost_ns,
        buffer_bytes=seat.buffer_bytes,
        trains=seat.trains,
        wake_ns=seat.wake_ns,
        wake_jitter_ns=seat.wake_jitter_ns,
        max_in_flight=joined.window,
    )
    if joined.shares_results:
        setup.results_group = int(IPv4Address(created.results_host))
        setup.results_udp_port = created.results_udp_port
    return network.add_worker(seat.host, name, setup, manner.config(ticket), manner.choice(ticket))


def manner_of(seat: Seat, ticket: Ticket) -> Manner:
    """How its worker behaves; ``ticket``: the one that it joined with."""
    return _SimManner(
        stall_timeout_ns=round(seat.op_timeout_s * 1e9),
        rto=RtoLimits(),
        keep_results=False,
        congestion=seat.congestion,
        leads_to=ticket.switch,
        wraps_after=seat.wraps_after,
    )


@dataclass(frozen=True)
class _SimManner(Manner):
    wraps_after: int = 0

    def config(self, ticket: Ticket) -> WorkerConfig:
        """Alike on all ranks: a multiple of 2 W before the end of sequence numbers."""
        config = super().config(ticket)
        both = 1 << (config.slots.bit_length() - 1)  # 2 W
        config.first_seq = -(-self.wraps_after // both) * -both % (1 << SERIAL_BITS)
        return config
