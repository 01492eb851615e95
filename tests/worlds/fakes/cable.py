"""Cables to the packet sockets of a switch, with somebody in the middle who holds both ends."""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
import uuid
from collections.abc import Iterator, Sequence

from ina.netns import End, NetnsError, add_pairs
from ina.netns import ip as ip_in
from tests.worlds.fakes.tap import Meddler
from tests.worlds.processes.namespaces import Host

_SOL_PACKET, _PACKET_VNET_HDR = 263, 15  # of Linux; Python has no names for them
_VNET_HEADER = struct.Struct("=BBHHHH")  # flags, gso_type, hdr_len, gso_size, csum_start, csum_off
_NO_OFFLOAD = bytes(_VNET_HEADER.size)
_ETHERNET, _IP, _UDP = 14, 20, 8
_HEADERS = _ETHERNET + _IP + _UDP
_ETH_P_ALL, _IPPROTO_UDP = 0x0003, 17
_BUFFER_BYTES = 8 << 20
_POLL_S = 0.2
_A_TURN = 64  # frames of one end before the others have theirs


class Cables:
    """One from each host to a port of the switch; :attr:`ports` are the interfaces for those.

    What a host's kernel has left to its card is done here: trains of datagrams are cut, and what is
    sent on says that it has no UDP checksum, so no kernel drops it for what became of its payload.
    """

    def __init__(self, hosts: Sequence[Host], ports: Sequence[str], far: Sequence[str]) -> None:
        """``far``: the other ends of ``ports``, ours."""
        self.ports = list(ports)
        self.meddle: Meddler = lambda _, packet: (packet,)
        self._selector = selectors.DefaultSelector()
        self._sockets: list[socket.socket] = []
        for host, end in zip(hosts, far, strict=True):
            inner, outer = _raw(host.interface), _raw(end)
            self._sockets += [inner, outer]
            self._selector.register(inner, selectors.EVENT_READ, (outer, True))
            self._selector.register(outer, selectors.EVENT_READ, (inner, False))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="cables", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread, then the sockets."""
        self._stopping.set()
        self._thread.join()
        self._selector.close()
        for sock in self._sockets:
            sock.close()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            for key, _ in self._selector.select(_POLL_S):
                target, from_worker = key.data
                self._forward(key.fileobj, target, from_worker)  # type: ignore[arg-type]

    def _forward(self, source: socket.socket, target: socket.socket, from_worker: bool) -> None:
        for _ in range(_A_TURN):
            try:
                received, (_, _, kind, _, _) = source.recvfrom(1 << 17)
            except BlockingIOError:
                return
            if kind == socket.PACKET_OUTGOING:
                continue
            for frame in self._frames(received, from_worker):
                # What finds no room is lost, as on any cable.
                with contextlib.suppress(OSError):
                    target.send(frame)

    def _frames(self, received: bytes, from_worker: bool) -> Iterator[bytes]:
        """What is sent on for one frame, or train of them, each with its virtio-net header."""
        _, _, _, gso_size, _, _ = _VNET_HEADER.unpack_from(received)
        frame = received[_VNET_HEADER.size :]
        if len(frame) < _HEADERS or frame[12:15] != b"\x08\x00\x45" or frame[23] != _IPPROTO_UDP:
            yield received
            return
        (udp_bytes,) = struct.unpack_from(">H", frame, _ETHERNET + _IP + 4)
        # Of a train the length may be the first datagram's; what is behind a short one is padding.
        end = len(frame) if gso_size else _ETHERNET + _IP + udp_bytes
        size = gso_size or end - _HEADERS
        for at in range(_HEADERS, end, max(size, 1)):
            for payload in self.meddle(from_worker, frame[at : min(at + size, end)]):
                yield _NO_OFFLOAD + _datagram(frame, payload)


def _datagram(like: bytes, payload: bytes) -> bytes:
    """A frame with the addresses of another, its lengths right and without a UDP checksum."""
    head = bytearray(like[:_HEADERS])
    struct.pack_into(">H", head, _ETHERNET + 2, _IP + _UDP + len(payload))
    struct.pack_into(">H", head, _ETHERNET + 10, 0)
    total = sum(struct.unpack_from(">10H", head, _ETHERNET))
    total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into(">H", head, _ETHERNET + 10, ~(total + (total >> 16)) & 0xFFFF)
    struct.pack_into(">HH", head, _ETHERNET + _IP + 4, _UDP + len(payload), 0)
    return bytes(head) + payload


def _raw(interface: str) -> socket.socket:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    sock.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
    sock.bind((interface, _ETH_P_ALL))
    sock.setblocking(False)
    return sock


@contextlib.contextmanager
def cables(hosts: Sequence[Host]) -> Iterator[Cables]:
    """Makes the pairs of interfaces, too."""
    tag = uuid.uuid4().hex[:6]
    pairs = [(f"c{tag}p{i}", f"c{tag}f{i}") for i in range(len(hosts))]
    try:
        for pair in pairs:
            add_pairs([(End(None, pair[0]), End(None, pair[1]))])
            for end in pair:
                ip_in(None, "link", "set", end, "addrgenmode", "none", "up")
        made = Cables(hosts, [port for port, _ in pairs], [far for _, far in pairs])
        try:
            yield made
        finally:
            made.close()
    finally:
        for port, _ in pairs:
            with contextlib.suppress(NetnsError):
                ip_in(None, "link", "del", port)
