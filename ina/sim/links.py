"""The way from a rank to its switch: a UDP socket, or the queue pairs of an RDMA NIC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ina import modes
from ina.extension import sim as native
from ina.extension.host import Framing, RtoLimits, WorkerConfig
from ina.host.calls import results_of
from ina.host.errors import TransportError
from ina.host.manner import Manner
from ina.host.member.join import Grant
from ina.host.soft_ring import LEAST_QP, RING_RTO, ring_ends
from ina.host.soft_roce import pair_ends
from ina.host.ticket import Ticket, lanes_of
from ina.host.trees import native_peer
from ina.protocol.peer import Peer
from ina.protocol.ring import RingNode
from ina.protocol.serial import SERIAL_BITS
from ina.rpc import controller_pb2 as pb2
from ina.sim.seat import Seat

_ECN_CAPABLE = 0x02


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
        config = manner.config(ticket)
        self._connect(setup, ticket, config)
        return network.add_worker(seat.host, name, setup, config, manner.choice(ticket))

    def _connect(self, setup: native.WorkerSetup, ticket: Ticket, config: WorkerConfig) -> None:
        """What its NIC is told besides."""


class SimPairLink(SimLink):
    """A queue pair of an unreliable connection."""

    def __init__(self, seat: Seat, created: pb2.CreateJobReply) -> None:
        """As :class:`SimLink`. The queue pair's number was never used on this host."""
        super().__init__(seat, created)
        self.own = replace(seat.own, queue_pair=seat.own.udp_port)

    def _connect(self, setup: native.WorkerSetup, ticket: Ticket, config: WorkerConfig) -> None:
        setup.pair = pair_ends(self.own, ticket.switch)


class SimRingLink(SimLink):
    """Queue pairs of reliable connections to and from its neighbours in a ring."""

    rto = RING_RTO

    def __init__(self, seat: Seat, created: pb2.CreateJobReply) -> None:
        """As :class:`SimLink`. Numbers of queue pairs are always the same, as adapters give them
        out again: what is late of a former connection must do no harm."""
        super().__init__(seat, created)
        pairs = range(LEAST_QP, LEAST_QP + 2 * lanes_of(created.slots))
        self.own = replace(seat.own, ring_pairs=tuple(pairs))

    def _connect(self, setup: native.WorkerSetup, ticket: Ticket, config: WorkerConfig) -> None:
        node = ticket.switch
        ring = node.ring if isinstance(node, RingNode) else None
        if ring is None:
            raise TransportError(f"job {ticket.job_name!r}: the controller has said no ring")
        setup.ring = ring_ends(ring, self.own.ring_pairs, config.first_seq // ticket.lanes)


_LINKS: Mapping[str, type[SimLink]] = {
    "udp": SimLink,
    "rocev2": SimPairLink,
    "ring": SimRingLink,
}
"""By what a mode's packets have around them."""


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
        return _LINKS[modes.of(created.mode).framing](self._seat, created), None


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
