"""Bare UDP datagrams, beside which small collectives are measured: an echo, and a ring.

They go the way that all packets between two ranks go.
"""

from __future__ import annotations

import socket
import struct

from ina.errors import DeadlineError

_ANSWER_S = 10.0


class UdpEnd:
    """One rank's end."""

    def __init__(self, host: str, payload_bytes: int) -> None:
        """Of a datagram. ``host``: this end's address."""
        self._room = bytearray(payload_bytes)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, 0))
        # In the kernel: a timeout of Python's would be one system call more for each datagram.
        seconds, rest = divmod(_ANSWER_S, 1)
        deadline = struct.pack("ll", int(seconds), round(rest * 1e6))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, deadline)

    @property
    def place(self) -> tuple[str, int]:
        """Address and port."""
        host, port = self._socket.getsockname()
        return host, port

    def connect(self, peer: tuple[str, int]) -> None:
        """To the other end."""
        self._socket.connect(peer)

    def ask(self, count: int) -> None:
        """So many datagrams there and back, one at a time. Raises DeadlineError: one is lost."""
        for _ in range(count):
            self._socket.send(self._room)
            self._receive()

    def answer(self, count: int) -> None:
        """So many datagrams go back. Raises DeadlineError: one does not come."""
        for _ in range(count):
            self._receive()
            self._socket.send(self._room)

    def pass_on(self, count: int, peer: tuple[str, int]) -> None:
        """In turns sends one to ``peer`` and gets one from whoever has this end as its peer.

        As many datagrams each way as a barrier has packets, and all ranks at work. Raises
        DeadlineError: one is lost.
        """
        for _ in range(count):
            self._socket.sendto(self._room, peer)
            self._receive()

    def _receive(self) -> None:
        try:
            self._socket.recv_into(self._room)
        except BlockingIOError:
            raise DeadlineError(f"udp: no datagram in {_ANSWER_S:g} s") from None

    def close(self) -> None:
        """No datagram comes after that."""
        self._socket.close()
