"""The UDP socket of a worker."""

from __future__ import annotations

import contextlib
import errno
import socket

from ina.extension.host import Framing, RtoLimits, Transport, TransportOptions, WorkerConfig
from ina.host.errors import TransportError
from ina.host.own_addresses import towards, why_not_own
from ina.p4.builds import IP_UDP_HEADER_BYTES, socket_mtu_bytes
from ina.protocol.peer import Peer

# The kernel grants at most net.core.rmem_max; the packets in flight are limited to what it grants.
RECEIVE_BUFFER_BYTES = 8 << 20
"""Asked for."""
_IP_MULTICAST_ALL = 49  # of Linux; Python has no name for it


class UdpLink:
    """A UDP socket that is connected to the switch."""

    switch_port = 0
    is_shm = False
    rto = RtoLimits()
    framing = Framing()
    around_bytes = 0
    """Of a packet's own headers, behind UDP's and at its end, that are not of `framing`."""

    def __init__(self, sock: socket.socket) -> None:
        """Take over `sock`."""
        self._socket = sock
        self._group: socket.socket | None = None
        self.own = Peer.at(sock.getsockname())
        self._lead_to(Peer.at(sock.getpeername()))

    @classmethod
    def open(cls, switch: Peer, own_host: str | None = None) -> UdpLink:
        """Open a socket as open_socket() does."""
        return cls(open_socket(switch, own_host))

    def lead_to(self, node: Peer) -> None:
        """Connect it to another node than it asked the controller for. Raises TransportError.

        To be called before transport(). Its own address, which the controller knows, stays.
        """
        if self.leads_to == node:
            return
        try:
            self._socket.connect(node.place)
        except OSError as error:
            raise TransportError(f"{self.name}: to {node}: {error.strerror}") from None
        here = Peer.at(self._socket.getsockname())
        if here.place != self.own.place:
            raise TransportError(
                f"{self.name}: {node.address} is reached from {here.address}, and the controller"
                f" knows {self.own.address}: say which by INA_HOST"
            )
        self._lead_to(node)

    def _lead_to(self, node: Peer) -> None:
        self.leads_to: Peer | None = node
        self.name = f"UDP {node}"

    def set_dscp(self, dscp: int) -> None:
        """What its packets carry, 0 to 63. The ECN bits are the transport's."""
        try:
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
        except OSError as error:
            raise TransportError(f"{self.name}: DSCP {dscp}: {error.strerror}") from None

    def transport(self, config: WorkerConfig, options: TransportOptions) -> Transport:
        """Start to work over it. Raises RuntimeError.

        With several threads this link's socket may end up unconnected: others, at its address,
        take its place.
        """
        return Transport.udp(
            self._socket.fileno(),
            config,
            RECEIVE_BUFFER_BYTES,
            options,
            group_fd=-1 if self._group is None else self._group.fileno(),
        )

    @property
    def is_listening(self) -> bool:
        """Whether results that the switch sends to several workers at once come here, too."""
        return self._group is not None

    def listen(self, group: Peer) -> None:
        """Listen at an IP multicast group, for what comes from the switch. Raises TransportError.

        To be called before transport(), and once.
        """
        self._group = open_group_socket(group, self._socket)

    def stop_listening(self) -> None:
        """Leave the group. Idempotent."""
        group, self._group = self._group, None
        if group is None:
            return
        with contextlib.suppress(OSError):  # the interface may be gone, and the membership with it
            membership = _ip_mreq(group.getsockname()[0], self.own.place[0])
            group.setsockopt(socket.IPPROTO_IP, socket.IP_DROP_MEMBERSHIP, membership)
        group.close()

    def check_mtu(self, who: str, payload_bytes: int) -> None:
        """Raise TransportError where the first link does not take such a header and values whole.

        The switch refuses fragments: without this a job would wait for its deadline.
        """
        most_bytes = socket_mtu_bytes(self._socket)
        around_bytes = self.framing.bytes + self.around_bytes
        packet_bytes = IP_UDP_HEADER_BYTES + around_bytes + payload_bytes
        if packet_bytes > most_bytes:
            raise TransportError(
                f"{who}: the job's packets of {packet_bytes} bytes do not fit: the MTU towards"
                f" {self.name} is {most_bytes}; raise it, or take fewer values a packet"
            )

    def close(self) -> None:
        """Close the sockets. Idempotent."""
        self._socket.close()
        group = self._group  # another thread may stop listening meanwhile
        if group is not None:
            group.close()


def open_socket(switch: Peer, own_host: str | None = None, own_port: int = 0) -> socket.socket:
    """Return a UDP socket connected to the switch, bound to `own_host` if given.

    `own_port`: 0: any free one. Connecting makes the kernel refuse datagrams from elsewhere.
    Raises TransportError.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    try:
        sock.bind((own_host or (towards(str(switch.address)) if own_port else ""), own_port))
        sock.connect(switch.place)
    except OSError as error:
        sock.close()
        why = str(error)
        if error.errno == errno.EADDRNOTAVAIL and own_host:
            why = why_not_own(own_host) or why
        if error.errno == errno.EADDRINUSE and own_port:
            why = f"{why}: one worker an address has UDP port {own_port}: say another by INA_HOST"
        where = f"{switch} from {own_host}" if own_host else str(switch)
        raise TransportError(f"no UDP socket towards the switch at {where}: {why}") from None
    return sock


def open_group_socket(group: Peer, connected: socket.socket) -> socket.socket:
    """Return a UDP socket that gets what the switch sends to a multicast group, and nothing else.

    `connected`: a socket that is connected to the switch; its own address says which of the host's
    networks the group is on. Other workers of this host may listen there, too.
    Raises TransportError.
    """
    own_host, switch = connected.getsockname()[0], connected.getpeername()
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    try:
        if not group.address.is_multicast:
            raise OSError("it is no IPv4 multicast group")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Of this group alone, and nothing of it before the kernel knows whom to admit.
        sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
        sock.bind(group.place)
        sock.connect(switch)
        sock.setsockopt(
            socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, _ip_mreq(group.place[0], own_host)
        )
    except OSError as error:
        sock.close()
        raise TransportError(
            f"cannot listen for results at {group} from {own_host}: {error}"
        ) from None
    return sock


def _ip_mreq(group: str, own_host: str) -> bytes:
    return socket.inet_aton(group) + socket.inet_aton(own_host)  # struct ip_mreq
