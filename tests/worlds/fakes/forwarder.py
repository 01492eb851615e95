"""A network between workers and the switch that loses, copies, reorders and keeps packets back.

Workers send to the front, one UDP socket. To the switch each worker is a socket of its own at the
back, with the worker's UDP port at another address; what comes there goes to that worker.
"""

from __future__ import annotations

import contextlib
import heapq
import random
import selectors
import socket
import time
from collections import Counter
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection

Address = tuple[str, int]

MAX_BYTES = 65536
MAX_BACKS = 256  # of workers that are gone, mostly; the oldest make room
_RECEIVE_BUFFER_BYTES = 4 << 20
_A_TURN = 64  # packets of one socket before the others have theirs


@dataclass(frozen=True)
class Weather:
    """What becomes of packets, as probabilities of each by itself, in both directions."""

    loss: float = 0.01
    copied: float = 0.01
    """Sent twice; the copy has a delay of its own."""
    overtaken: float = 0.02
    """Kept back for up to ``short_s``, so that others pass."""
    kept: float = 0.002
    """Kept back for up to ``long_s``."""
    short_s: float = 0.005
    long_s: float = 1.0

    def delays_s(self, dice: random.Random) -> list[float]:
        """When the copies of one packet are sent on; none: it is lost."""
        if dice.random() < self.loss:
            return []
        copies = 2 if dice.random() < self.copied else 1
        return [self._delay_s(dice) for _ in range(copies)]

    def _delay_s(self, dice: random.Random) -> float:
        drawn = dice.random()
        if drawn < self.kept:
            return dice.uniform(0, self.long_s)
        return dice.uniform(0, self.short_s) if drawn < self.kept + self.overtaken else 0.0


@dataclass
class Counts:
    """Packets that came, and what became of them."""

    came: int = 0
    lost: int = 0
    copied: int = 0
    overtaken: int = 0
    kept: int = 0
    """Longer than ``short_s``."""
    refused: int = 0
    """Told by the kernel: nobody listens at the switch or the worker."""


class Forwarder:
    """The sockets; :meth:`serve` works until it is told to end."""

    def __init__(
        self, front: Address, back_host: str, switch: Address, weather: Weather, seed: int
    ) -> None:
        """``front``: where workers send to; ``back_host``: the address they have to the switch."""
        self.counts = Counts()
        self._weather, self._dice = weather, random.Random(seed)
        self._back_host, self._switch = back_host, switch
        self._front = _bound(front)
        self.front: Address = self._front.getsockname()
        self._workers: dict[int, Address] = {}
        self._backs: dict[int, socket.socket] = {}
        self._due: list[tuple[float, int, int, bool, bytes]] = []
        self._number = 0
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._front, selectors.EVENT_READ, 0)

    def serve(self, told: Connection) -> None:
        """Forward until something can be read from ``told``; then say there what was counted."""
        self._selector.register(told, selectors.EVENT_READ, None)
        with contextlib.suppress(OSError):  # whoever wanted to know is gone
            while self._turn():
                pass
            told.send(Counter(asdict(self.counts)))
        self.close()

    def close(self) -> None:
        """Closes the sockets."""
        for sock in (self._front, *self._backs.values()):
            sock.close()
        self._selector.close()

    def _turn(self) -> bool:
        """Returns whether to go on."""
        wait_s = max(self._due[0][0] - time.monotonic(), 0.0) if self._due else None
        for key, _ in self._selector.select(wait_s):
            if key.data is None:
                return False
            self._read(key.fileobj, key.data)  # type: ignore[arg-type]
        now = time.monotonic()
        while self._due and self._due[0][0] <= now:
            _, _, port, to_switch, packet = heapq.heappop(self._due)
            self._send(port, to_switch, packet)
        return True

    def _read(self, sock: socket.socket, port: int) -> None:
        """``port``: the worker's; 0: it is the front, and whoever sent says so."""
        for _ in range(_A_TURN):
            try:
                packet, source = sock.recvfrom(MAX_BYTES)
            except BlockingIOError:
                return
            except OSError:  # an ICMP error of a packet that was sent
                self.counts.refused += 1
                continue
            if port == 0:
                self._workers[source[1]] = source
            self._meet(port or source[1], port == 0, packet)

    def _meet(self, port: int, to_switch: bool, packet: bytes) -> None:
        """One packet, and the weather."""
        counts = self.counts
        counts.came += 1
        delays_s = self._weather.delays_s(self._dice)
        counts.lost += not delays_s
        counts.copied += len(delays_s) > 1
        for delay_s in delays_s:
            if delay_s == 0.0:
                self._send(port, to_switch, packet)
                continue
            if delay_s > self._weather.short_s:
                counts.kept += 1
            else:
                counts.overtaken += 1
            self._number += 1
            due = time.monotonic() + delay_s
            heapq.heappush(self._due, (due, self._number, port, to_switch, packet))

    def _send(self, port: int, to_switch: bool, packet: bytes) -> None:
        try:
            if to_switch:
                self._back(port).send(packet)
            else:
                self._front.sendto(packet, self._workers[port])
        except OSError:  # refused, or no room: lost
            self.counts.refused += 1

    def _back(self, port: int) -> socket.socket:
        back = self._backs.get(port)
        if back is None:
            if len(self._backs) >= MAX_BACKS:
                oldest = self._backs.pop(next(iter(self._backs)))
                self._selector.unregister(oldest)
                oldest.close()
            back = self._backs[port] = _bound((self._back_host, port))
            back.connect(self._switch)
            self._selector.register(back, selectors.EVENT_READ, port)
        return back


def _bound(address: Address) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
    sock.bind(address)
    sock.setblocking(False)
    return sock
