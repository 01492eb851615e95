"""The UDP socket of a worker."""

from __future__ import annotations

import socket

from ina._native.host import RtoLimits, Transport, WorkerConfig
from ina.host.errors import TransportError
from ina.p4.builds import IP_UDP_HEADER_BYTES, socket_mtu_bytes

# The kernel grants at most net.core.rmem_max; the packets in flight are limited to what it grants.
_RECEIVE_BUFFER_BYTES = 8 << 20


class UdpLink:
    """A UDP socket that is connected to the switch."""

    switch_port = 0
    rto = RtoLimits()

    def __init__(self, sock: socket.socket) -> None:
        """Take over `sock`."""
        self._socket = sock
        host, port = sock.getpeername()
        self.name = f"UDP {host}:{port}"
        self.address: tuple[str, int] = sock.getsockname()

    @classmethod
    def open(cls, switch_host: str, switch_udp_port: int, own_host: str | None = None) -> UdpLink:
        """Open a socket as open_socket() does."""
        return cls(open_socket(switch_host, switch_udp_port, own_host))

    def transport(self, config: WorkerConfig, max_in_flight: int, threads: int) -> Transport:
        """Start to work over it, with at most so many threads. Raises RuntimeError.

        With several threads this link's socket may end up unconnected: others, at its address,
        take its place.
        """
        return Transport.udp(
            self._socket.fileno(), config, _RECEIVE_BUFFER_BYTES, max_in_flight, threads=threads
        )

    def check_mtu(self, who: str, payload_bytes: int) -> None:
        """Raise TransportError where the first link does not take such a UDP payload whole.

        The switch refuses fragments: without this a job would wait for its deadline.
        """
        most_bytes = socket_mtu_bytes(self._socket)
        packet_bytes = IP_UDP_HEADER_BYTES + payload_bytes
        if packet_bytes > most_bytes:
            raise TransportError(
                f"{who}: the job's packets of {packet_bytes} bytes do not fit: the MTU towards"
                f" {self.name} is {most_bytes}; raise it, or take fewer values a packet"
            )

    def close(self) -> None:
        """Close the socket. Idempotent."""
        self._socket.close()


def open_socket(
    switch_host: str, switch_udp_port: int, own_host: str | None = None
) -> socket.socket:
    """Return a UDP socket connected to the switch, bound to `own_host` if given.

    Its own port is any free one; connecting makes the kernel refuse datagrams from elsewhere.
    Raises TransportError.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    try:
        sock.bind((own_host or "", 0))
        sock.connect((switch_host, switch_udp_port))
    except OSError as error:
        sock.close()
        where = f"{switch_host}:{switch_udp_port}" + (f" from {own_host}" if own_host else "")
        raise TransportError(f"no UDP socket towards the switch at {where}: {error}") from None
    return sock
