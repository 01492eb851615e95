"""Where a rank sits, what its host costs it, and the way to the switch that it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ina.congestion import Choice
from ina.extension import sim as native
from ina.extension.host import Framing, RtoLimits, WorkerConfig
from ina.host.calls import results_of
from ina.host.manner import Manner
from ina.host.member.join import Grant
from ina.host.options import WorkerOptions
from ina.host.ticket import Ticket
from ina.host.trees import native_peer
from ina.protocol.peer import Peer
from ina.protocol.serial import SERIAL_BITS
from ina.rpc import controller_pb2 as pb2
from ina.sim.own_aggregator import OwnAggregator

_ECN_CAPABLE = 0x02
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


class SimLink:
    """A rank's way to the switch; see :class:`ina.host.member.join.JoinLink`."""

    is_shm = False
    framing = Framing()
    rto = RtoLimits()
    leads_to: Peer | None = None

    def __init__(self, seat: Seat, created: pb2.CreateJobReply) -> None:
        """``created``: what the controller has said of the job."""
        self._seat, self._created = seat, created
        self._dscp = 0
        self.own = seat.own
        self.switch_port = seat.switch_port
        self.is_listening = seat.shares_results and bool(created.results_host)

    def lead_to(self, node: Peer) -> None:
        """It goes by the ticket."""

    def set_dscp(self, dscp: int) -> None:
        """What its packets carry."""
        self._dscp = dscp

    def stop_listening(self) -> None:
        """Results are its own."""
        self.is_listening = False

    def close(self) -> None:
        """Nothing is open before there is a worker."""

    def open(
        self, network: native.Network, name: str, grant: Grant[SimLink], manner: Manner
    ) -> native.Worker:
        """The worker of a place that was granted.

        Raises ValueError: a number is out of range; CongestionError: there is no such window.
        """
        seat, ticket, created = self._seat, grant.ticket, self._created
        setup = native.WorkerSetup(
            own=native_peer(seat.own),
            to=native_peer(ticket.switch),
            tos=self._dscp << 2 | _ECN_CAPABLE,
            packet_cost_ns=seat.packet_cost_ns,
            kibibyte_cost_ns=seat.kibibyte_cost_ns,
            buffer_bytes=seat.buffer_bytes,
            trains=seat.trains,
            wake_ns=seat.wake_ns,
            wake_jitter_ns=seat.wake_jitter_ns,
            max_in_flight=grant.window,
        )
        group = results_of(created)
        if self.is_listening and group is not None:
            setup.results = native_peer(group)
        choice: Choice = manner.choice(ticket)
        return network.add_worker(seat.host, name, setup, manner.config(ticket), choice)


class SimHost:
    """A rank's host as joining needs it: :class:`ina.host.member.join.OwnHost`."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat

    def addresses(self, controller: str) -> Sequence[str]:
        """It has one."""
        return [str(self._seat.own.address)]

    def towards(self, host: str) -> str:
        """The same."""
        return str(self._seat.own.address)

    def open(self, created: pb2.CreateJobReply, left_s: float) -> tuple[SimLink, None]:
        """The way to the switch; no host of a virtual network has a node."""
        return SimLink(self._seat, created), None


class SimShared:
    """Whether results by IP multicast reach it: :class:`ina.host.member.beat.Shared`."""

    is_watched = False
    missing = False

    def look(self) -> bool:
        """It is told."""
        return False


def manner_of(seat: Seat, grant: Grant[SimLink]) -> Manner:
    """How its worker behaves."""
    manner = _SimManner.of(seat.options, grant.ticket, grant.link)
    return replace(manner, wraps_after=seat.wraps_after)


@dataclass(frozen=True)
class _SimManner(Manner):
    wraps_after: int = 0

    def config(self, ticket: Ticket) -> WorkerConfig:
        """Alike on all ranks: a multiple of 2 W before the end of sequence numbers."""
        config = super().config(ticket)
        both = 1 << (config.slots.bit_length() - 1)  # 2 W
        config.first_seq = -(-self.wraps_after // both) * -both % (1 << SERIAL_BITS)
        return config
