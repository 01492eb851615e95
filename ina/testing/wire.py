"""How frames get to a device's ports and come back: network interfaces, through packet sockets."""

from __future__ import annotations

import contextlib
import selectors
import socket
from collections.abc import Mapping
from typing import Protocol

from ina.netns import inside
from ina.testing.errors import DeviceError
from ina.testing.frames import ETHERNET_BYTES, PortFrame

ETH_P_ALL = 3
_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, _PACKET_IGNORE_OUTGOING = 263, 1, 23
_PACKET_MR_PROMISC = 1
_SO_RCVBUFFORCE = 33
_BUFFER_BYTES = 8 << 20
LONGEST_FRAME = 9000
"""Longer frames than this are not sent: BMv2 and real ports take jumbo frames at most."""


class Wire(Protocol):
    """The cables to a device's ports."""

    ports: range
    frame_bytes: range

    def send(self, port: int, data: bytes) -> None:
        """Sends one frame to a port."""
        ...

    def receive(self, timeout_s: float) -> list[PortFrame]:
        """Returns what has arrived; waits for the first at most ``timeout_s``."""
        ...


class SocketWire:
    """One packet socket a port. A context manager: it opens and closes them."""

    frame_bytes = range(ETHERNET_BYTES, LONGEST_FRAME + 1)

    def __init__(self, interfaces: Mapping[int, str], namespace: str | None = None) -> None:
        """``interfaces``: port number to interface, in the named network namespace or in ours."""
        if not interfaces:
            raise DeviceError("a device needs at least one port: none is mapped to an interface")
        self.ports = range(min(interfaces), max(interfaces) + 1)
        self._interfaces = dict(interfaces)
        self._namespace = namespace
        self._sockets: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> SocketWire:
        try:
            with inside(self._namespace):
                for port, interface in self._interfaces.items():
                    self._open(port, interface)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        for opened in self._sockets.values():
            opened.close()
        self._sockets.clear()
        self._selector.close()

    def send(self, port: int, data: bytes) -> None:
        """Sends one frame; raises DeviceError where there is no such port."""
        sock = self._sockets.get(port)
        if sock is None:
            raise DeviceError(f"port {port} is not mapped to an interface")
        sock.setblocking(True)
        try:
            sock.send(data)
        except OSError as error:
            where = self._interfaces[port]
            raise DeviceError(f"port {port} ({where}), {len(data)} bytes: {error}") from None

    def receive(self, timeout_s: float) -> list[PortFrame]:
        """What has arrived at all ports; of one port, in order."""
        frames: list[PortFrame] = []
        for key, _ in self._selector.select(timeout_s):
            with contextlib.suppress(BlockingIOError):
                while True:
                    data = key.fileobj.recv(1 << 16, socket.MSG_DONTWAIT)  # type: ignore[union-attr]
                    frames.append((key.data, data))
        return frames

    def _open(self, port: int, interface: str) -> None:
        try:
            sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        except PermissionError:
            raise DeviceError("packet sockets need root or CAP_NET_RAW") from None
        self._sockets[port] = sock
        try:
            sock.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
            with contextlib.suppress(OSError):  # the kernel's limit does as well
                sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
            sock.bind((interface, ETH_P_ALL))
            index = socket.if_nametoindex(interface)
            wanted = index.to_bytes(4, "little") + _PACKET_MR_PROMISC.to_bytes(2, "little")
            sock.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, wanted + bytes(10))
        except OSError as error:
            raise DeviceError(f"port {port}, interface {interface}: {error.strerror}") from None
        self._selector.register(sock, selectors.EVENT_READ, port)
