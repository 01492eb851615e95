"""What UDP packets on the loopback interface have in their IP headers; needs root."""

from __future__ import annotations

import socket
import struct
from collections import defaultdict
from typing import TypeAlias

import pytest

Address: TypeAlias = tuple[str, int]

_ALL, _HEADER_BYTES = 3, 14
_BUFFER_BYTES = 32 << 20
"""What tests beside this one send over the loopback waits there, too."""
_SO_RCVBUFFORCE = 33  # of Linux: beyond net.core.rmem_max, for root


class Seen:
    """Sees them from its making on. Addresses are IPv4, with a UDP port."""

    def __init__(self) -> None:
        """Skips the test, saying why, where packets cannot be seen."""
        try:
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL))
        except PermissionError:
            pytest.skip("needs root, for a packet socket")
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        self._socket.bind(("lo", _ALL))

    def all(self) -> dict[tuple[Address, Address], set[int]]:
        """The TOS by sender and receiver. Once."""
        found = defaultdict(set)
        while True:
            try:
                frame = self._socket.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            packet = frame[_HEADER_BYTES:]
            if packet[:1] == b"\x45" and packet[9] == socket.IPPROTO_UDP:
                one, other = (socket.inet_ntoa(packet[at : at + 4]) for at in (12, 16))
                one_port, other_port = struct.unpack_from("!HH", packet, 20)
                found[(one, one_port), (other, other_port)].add(packet[1])
        self._socket.close()
        return dict(found)
