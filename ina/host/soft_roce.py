"""RoCEv2 without an RDMA device: the way to the switch over a UDP socket, in user space.

Each packet is a SEND on an unreliable connection, with BTH and ICRC that this process makes and
looks at. Where the switch is reached at RoCEv2's own UDP port, its packets are on the wire what a
NIC's are; a soft switch's UDP port at any other is the end of a tunnel for what frames have behind
UDP (``ina.switch.ports``).
"""

from __future__ import annotations

import secrets
import socket
from dataclasses import replace

from ina.extension import host as native
from ina.extension.host import SoftRoceEnds, Transport, TransportOptions, WorkerConfig
from ina.host.errors import TransportError
from ina.host.own_addresses import why_not_own
from ina.host.trees import native_peer
from ina.host.udp import RECEIVE_BUFFER_BYTES, UdpLink, open_socket
from ina.protocol.bth import BTH_BYTES, ROCE_UDP_PORT
from ina.protocol.icrc import ICRC_BYTES
from ina.protocol.peer import Peer

_LEAST_QP, _QPS = 2, 1 << 23  # 0 and 1 are InfiniBand's own; switches have the upper half


class SoftRoceLink(UdpLink):
    """One end of an unreliable connection, over a UDP socket that is connected to the switch."""

    around_bytes = BTH_BYTES + ICRC_BYTES

    def __init__(self, sock: socket.socket) -> None:
        """Take over `sock`."""
        super().__init__(sock)
        queue_pair = _LEAST_QP + secrets.randbelow(_QPS - _LEAST_QP)
        self.own = replace(self.own, queue_pair=queue_pair)

    @classmethod
    def open(cls, switch: Peer, own_host: str | None = None) -> SoftRoceLink:
        """Open a socket as open_socket() does: at RoCEv2's port, if the switch is at that, too."""
        own_port = ROCE_UDP_PORT if _is_on_wire(switch) else 0
        return cls(open_socket(switch, own_host, own_port))

    @property
    def is_on_wire(self) -> bool:
        """Whether its packets are frames of RoCEv2, not what goes through a tunnel."""
        return _is_on_wire(self._node)

    def _lead_to(self, node: Peer) -> None:
        super()._lead_to(node)
        self._node = node
        self.name = f"RoCEv2 in software, {node}"

    def transport(self, config: WorkerConfig, options: TransportOptions) -> Transport:
        """Start to work over it, by one thread. Raises RuntimeError."""
        if not self._node.queue_pair:
            raise TransportError(f"{self.name}: the controller has said no queue pair there")
        ends = pair_ends(self.own, self._node)
        return Transport.soft_roce(
            self._socket.fileno(), ends, self.is_on_wire, config, RECEIVE_BUFFER_BYTES, options
        )


def _is_on_wire(node: Peer) -> bool:
    # What is at an address of this host is a socket of its kernel's.
    return node.udp_port == ROCE_UDP_PORT and bool(why_not_own(str(node.address)))


def pair_ends(own: Peer, node: Peer) -> SoftRoceEnds:
    """Of a connection to a node, as the core is told; both have a queue pair."""
    return SoftRoceEnds(
        own=native_peer(own),
        own_qp=own.queue_pair,
        node=native.Peer(ipv4=int(node.address), udp_port=ROCE_UDP_PORT),
        node_qp=node.queue_pair,
    )
