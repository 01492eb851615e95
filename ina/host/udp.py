"""The UDP socket of a worker."""

from __future__ import annotations

import socket

from ina.host.errors import TransportError


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
