"""A star whose links carry whole trains of packets (GSO) through token buckets, in virtual time.

As on the links of ``ina bench``: a queue that has no room for a train drops all of it, so workers
lose many packets at once, and each of them others. The switch only counts and echoes.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ina._native.host import WorkerCore
from ina.protocol.spec import HEADER_BYTES, ValueType
from tests.host.network import worker_config
from tests.host.shaped import EchoSwitch

FRAME_BYTES = 42  # Ethernet, IPv4, UDP
TRAIN_BYTES = 65000
Packets = list[bytes]


@dataclass
class TokenBucket:
    """One direction of a link: bytes, times in ns."""

    bytes_per_ns: float
    queue_bytes: int
    burst_bytes: int = 80 << 10
    delay_ns: int = 20_000
    lost: int = 0

    def __post_init__(self) -> None:
        self._tokens, self._at_ns = float(self.burst_bytes), 0.0
        self._queue: deque[tuple[float, int]] = deque()  # when each train leaves, and its size

    def carry(self, now_ns: float, train: Packets) -> float | None:
        """When the train arrives; None: it is lost."""
        nbytes = sum(len(packet) + FRAME_BYTES for packet in train)
        while self._queue and self._queue[0][0] <= now_ns:
            self._queue.popleft()
        if nbytes + sum(size for _, size in self._queue) > self.queue_bytes:
            self.lost += len(train)
            return None
        leaves_ns = max(now_ns, self._queue[-1][0] if self._queue else 0.0)
        gained = (leaves_ns - self._at_ns) * self.bytes_per_ns
        tokens = min(self.burst_bytes, self._tokens + gained)
        if tokens < nbytes:
            leaves_ns += (nbytes - tokens) / self.bytes_per_ns
            tokens = nbytes
        self._tokens, self._at_ns = tokens - nbytes, leaves_ns
        if leaves_ns > now_ns:
            self._queue.append((leaves_ns, nbytes))
        return leaves_ns + self.delay_ns


def trains(packets: Packets, longest: int) -> list[Packets]:
    """Runs of packets of one size, as long as GSO takes them, and not longer than ``longest``."""
    found: list[Packets] = []
    for packet in packets:
        last = found[-1] if found else []
        most = min(TRAIN_BYTES // len(packet), longest)
        if last and len(last[0]) == len(packet) and len(last) < most:
            last.append(packet)
        else:
            found.append([packet])
    return found


@dataclass
class TrainStar:
    """``world_size`` workers, each with a link to the switch and one back."""

    world_size: int
    queue_bytes: int
    values: int = 360
    slots: int = 512
    bits_per_s: float = 1e9
    late_ns: float = 30_000.0  # mean of how long a train waits for its receiver's core
    now_ns: float = 0.0
    cores: list[WorkerCore] = field(init=False)

    def __post_init__(self) -> None:
        shape = (self.bits_per_s / 8e9, self.queue_bytes)
        ranks = range(self.world_size)
        self.cores = [
            WorkerCore(worker_config(rank, self.world_size, self.slots, self.values))
            for rank in ranks
        ]
        self.up = [TokenBucket(*shape) for _ in ranks]
        self.down = [TokenBucket(*shape) for _ in ranks]
        self._switch = EchoSwitch(self.world_size, self.slots)
        self._events: list[tuple[float, int, int, Packets]] = []  # time, order, receiver, train
        self._order = 0
        self._random = np.random.default_rng(0)

    def reduce(self, chunks: int, look: Callable[[], object] = lambda: None) -> float:
        """Reduces an int32 tensor; returns the share of the wire's time that it had.

        ``look`` is called whenever something has happened.
        """
        data = np.zeros(chunks * self.values, np.int32)
        address, begin_ns = data.ctypes.data, self.now_ns
        number = 1 + self.cores[0].counters.tensors_submitted
        for core in self.cores:
            now_ns = int(self.now_ns)
            core.submit(number, address, address, data.size, ValueType.INT32, False, now_ns)
        waiting = set(range(self.world_size))
        while waiting:
            for rank, core in enumerate(self.cores):
                packets: Packets = []
                while batch := core.poll_transmit(int(self.now_ns)):
                    packets += batch
                self._send(self.up[rank], -1 - rank, packets, core.longest_train)
                if core.take_completions():
                    waiting.discard(rank)
            look()
            self._wait()
        packet_bytes = 4 * self.values + HEADER_BYTES + FRAME_BYTES
        return chunks * packet_bytes * 8e9 / self.bits_per_s / (self.now_ns - begin_ns)

    def lost(self) -> int:
        return sum(link.lost for link in (*self.up, *self.down))

    def _wait(self) -> None:
        deadlines = [core.next_deadline_ns(int(self.now_ns)) for core in self.cores]
        times: list[float] = [at_ns for at_ns in deadlines if at_ns is not None]
        if self._events:
            times.append(self._events[0][0])
        if times:
            self.now_ns = max(self.now_ns, min(times))
        while self._events and self._events[0][0] <= self.now_ns:
            _, _, receiver, train = heapq.heappop(self._events)
            if receiver < 0:
                self._answer(-1 - receiver, train)
                continue
            for packet in train:
                self.cores[receiver].on_result(packet, int(self.now_ns))

    def _send(
        self, link: TokenBucket, receiver: int, packets: Packets, longest: int = 1 << 30
    ) -> None:
        for train in trains(packets, longest):
            at_ns = link.carry(self.now_ns, train)
            if at_ns is None:
                continue
            self._order += 1
            at_ns += self._random.exponential(self.late_ns)
            heapq.heappush(self._events, (at_ns, self._order, receiver, train))

    def _answer(self, worker: int, train: Packets) -> None:
        results: list[Packets] = [[] for _ in range(self.world_size)]
        for packet in train:
            for rank, result in self._switch.receive(worker, packet):
                results[rank].append(result)
        for rank, packets in enumerate(results):
            self._send(self.down[rank], rank, packets)
