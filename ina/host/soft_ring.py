"""A ring of RoCEv2's reliable connections in user space: mode ``transparent`` without NICs.

Frames are whole, in the datagrams of a UDP socket to a switch's port for such
(:class:`ina.switch.ports.FramesPort`).
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Sequence
from dataclasses import replace

from ina.extension import host as native
from ina.extension.host import (
    ReliableLimits,
    RingEnds,
    RtoLimits,
    Transport,
    TransportOptions,
    WorkerConfig,
)
from ina.host.errors import TransportError
from ina.host.udp import RECEIVE_BUFFER_BYTES, UdpLink, open_socket
from ina.p4.builds import ETHERNET_BYTES, IP_UDP_HEADER_BYTES
from ina.protocol.bth import BTH_BYTES
from ina.protocol.icrc import ICRC_BYTES
from ina.protocol.peer import Peer
from ina.protocol.ring import Ring, RingNode
from ina.protocol.roce import psn_of

LEAST_QP = 2
"""0 and 1 are InfiniBand's own."""
_QPS = 1 << 23
_FLOW = 0xC000  # of frames, as a NIC says it
_TIMEOUT_NS = 50_000_000
_RETRIES = 24
"""A connection is silent for so long until it sends again, twice as long the next time, up to
1.6 s, and has failed after half a minute: others' packets wait for the slowest worker, and an
adapter cannot tell that from loss."""
_NEVER_NS = 3_600_000_000_000
RING_RTO = RtoLimits(initial_ns=_NEVER_NS, min_ns=_NEVER_NS, max_ns=_NEVER_NS)
"""Of the core there: an hour, for what is lost the connections send again."""


class SoftRingLink(UdpLink):
    """Two connections for each lane, one either way round the ring."""

    around_bytes = ETHERNET_BYTES + IP_UDP_HEADER_BYTES + BTH_BYTES + ICRC_BYTES
    rto = RING_RTO

    def __init__(self, sock: socket.socket, lanes: int) -> None:
        """Take over `sock`. `lanes`: of the job's window."""
        super().__init__(sock)
        first = LEAST_QP + secrets.randbelow(_QPS - LEAST_QP - 2 * lanes)
        self.own = replace(self.own, ring_pairs=tuple(range(first, first + 2 * lanes)))

    @classmethod
    def to(cls, switch: Peer, own_host: str | None, lanes: int) -> SoftRingLink:
        """Open a socket as open_socket() does."""
        return cls(open_socket(switch, own_host), lanes)

    def _lead_to(self, node: Peer) -> None:
        super()._lead_to(node)
        self._ring = node.ring if isinstance(node, RingNode) else None
        self.name = f"a ring of RoCEv2 in software, {node}"

    def transport(self, config: WorkerConfig, options: TransportOptions) -> Transport:
        """Start to work over it, by one thread. Raises TransportError, RuntimeError."""
        ring = self._ring
        if ring is None:
            raise TransportError(f"{self.name}: the controller has said no place in a ring")
        ends = ring_ends(ring, self.own.ring_pairs)
        fd = self._socket.fileno()
        return Transport.soft_ring(fd, ends, config, RECEIVE_BUFFER_BYTES, options)


def ring_ends(ring: Ring, pairs: Sequence[int], messages: int = 0) -> RingEnds:
    """Of a place in a ring, as the core is told.

    `pairs`: its own queue pairs, as ``Peer.ring_pairs``. `messages`: of each connection, that were
    sent before the first one.
    """
    lanes = len(pairs) // 2
    own, following, previous = (
        native.Peer(ipv4=int(address), udp_port=_FLOW)
        for address in (ring.own, ring.next, ring.previous)
    )
    return RingEnds(
        own=own,
        next=following,
        previous=previous,
        own_out=list(pairs[:lanes]),
        own_in=list(pairs[lanes:]),
        next_in=list(ring.next_pairs),
        previous_out=list(ring.previous_pairs),
        first_psn=psn_of(messages, ring.first_psn),
        limits=ReliableLimits(timeout_ns=_TIMEOUT_NS, retries=_RETRIES),
    )
