"""A star of links with a rate and a queue, in virtual time: what a window does to them.

The switch is the barest one that a worker can use: it counts who has sent, and echoes. Sums are not
looked at here; in exchange a run of many MiB takes seconds.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from ina._native.congestion import Choice
from ina._native.host import WorkerCore
from ina.protocol.spec import HEADER_BYTES, Flag, Kind, ValueType
from tests.host.network import worker_config

FRAME_BYTES = 66  # Ethernet with preamble and gap, IPv4, UDP: what a packet takes besides
VALUES = 256
PACKET_BYTES = HEADER_BYTES + 4 * VALUES


@dataclass
class ShapedLink:
    """One direction. A packet that finds the queue full is lost; times in ns."""

    bits_per_s: float
    queue_packets: int
    mark_packets: int  # a longer queue sets the ECN flag
    delay_ns: int = 20_000
    busy_until_ns: float = 0.0
    lost: int = 0
    longest_ns: float = 0.0

    def carry(self, now_ns: int, payload_bytes: int) -> tuple[int, bool] | None:
        """Returns when the packet arrives and whether it is marked; None: it is lost."""
        wire_ns = (payload_bytes + FRAME_BYTES) * 8e9 / self.bits_per_s
        waiting_ns = max(self.busy_until_ns - now_ns, 0.0)
        queued = waiting_ns / ((PACKET_BYTES + FRAME_BYTES) * 8e9 / self.bits_per_s)
        if queued >= self.queue_packets:
            self.lost += 1
            return None
        self.longest_ns = max(self.longest_ns, waiting_ns)
        self.busy_until_ns = now_ns + waiting_ns + wire_ns
        return int(self.busy_until_ns) + self.delay_ns, queued >= self.mark_packets


@dataclass
class _Slot:
    seq: int = -1
    workers: int = 0
    marked: bool = False


class EchoSwitch:
    """Answers a chunk's last contribution, for everyone, and later ones, for their sender."""

    def __init__(self, world_size: int, slots: int) -> None:
        self._world_size = world_size
        self._slots = [_Slot() for _ in range(slots)]

    def receive(self, worker: int, packet: bytes) -> list[tuple[int, bytes]]:
        """Results, each with the rank that it is for."""
        seq = int.from_bytes(packet[12:16], "big")
        slot = self._slots[seq % len(self._slots)]
        if seq > slot.seq:
            slot.seq, slot.workers, slot.marked = seq, 0, False
        everyone = (1 << self._world_size) - 1
        again = bool(slot.workers >> worker & 1)
        if seq < slot.seq or (again and slot.workers != everyone):
            return []
        slot.workers |= 1 << worker
        slot.marked |= bool(packet[1] & Flag.ECN)
        if slot.workers != everyone:
            return []
        results = []
        for rank in [worker] if again else range(self._world_size):
            head = bytearray(packet[:HEADER_BYTES])
            head[0] = head[0] & 0xF0 | Kind.RESULT
            head[1] = Flag.ECN if slot.marked else 0
            head[6] = rank
            head[16:20] = everyone.to_bytes(4, "big")
            digest = int.from_bytes(packet[22:24], "big") * self._world_size  # all say the same
            head[22:24] = (digest % (1 << 16)).to_bytes(2, "big")
            results.append((rank, bytes(head) + packet[HEADER_BYTES:]))
        return results


@dataclass
class Star:
    """`world_size` workers, each with a link to the switch and one back."""

    world_size: int
    slots: int = 512
    bits_per_s: float = 1e9
    queue_packets: int = 1 << 30
    mark_packets: int = 1 << 30
    window: str = "adaptive"
    random_loss: float = 0.0
    seed: int = 0  # of random losses
    now_ns: int = 0
    cores: list[WorkerCore] = field(init=False)

    def __post_init__(self) -> None:
        self.cores = [
            WorkerCore(
                worker_config(rank, self.world_size, self.slots, VALUES),
                congestion=Choice(self.window),
            )
            for rank in range(self.world_size)
        ]
        shape = (self.bits_per_s, self.queue_packets, self.mark_packets)
        self.up = [ShapedLink(*shape) for _ in self.cores]
        self.down = [ShapedLink(*shape) for _ in self.cores]
        self._switch = EchoSwitch(self.world_size, self.slots)
        self._events: list[tuple[int, int, int, bytes]] = []  # time, order, receiver, payload
        self._order = 0
        self._random = np.random.default_rng(self.seed)

    def reduce(self, tensors: int, chunks: int) -> float:
        """Reduces int32 tensors one after the other; returns the share of the wire that they had.

        1.0: the time that their packets take on one link, one behind the other, and one way back.
        """
        data = np.zeros(chunks * VALUES, np.int32)
        begin_ns = self.now_ns
        first = 1 + self.cores[0].counters.tensors_submitted
        for number in range(first, first + tensors):
            for core in self.cores:
                address = data.ctypes.data
                core.submit(
                    number, address, address, data.size, ValueType.INT32, False, self.now_ns
                )
            self._run()
        packet_ns = (PACKET_BYTES + FRAME_BYTES) * 8e9 / self.bits_per_s
        least_ns = tensors * (chunks * packet_ns + packet_ns + 2 * self.up[0].delay_ns)
        return least_ns / (self.now_ns - begin_ns)

    def lost(self) -> int:
        return sum(link.lost for link in (*self.up, *self.down))

    def _run(self) -> None:
        done = [False] * self.world_size
        while not all(done):
            for rank, core in enumerate(self.cores):
                while packets := core.poll_transmit(self.now_ns):
                    for packet in packets:
                        self._send(self.up[rank], -1 - rank, packet)
                done[rank] |= bool(core.take_completions())
            times = [at for core in self.cores if (at := core.next_deadline_ns(self.now_ns))]
            if self._events:
                times.append(self._events[0][0])
            if not times:
                continue
            self.now_ns = max(self.now_ns, min(times))
            while self._events and self._events[0][0] <= self.now_ns:
                _, _, receiver, payload = heapq.heappop(self._events)
                if receiver >= 0:
                    self.cores[receiver].on_result(payload, self.now_ns)
                else:
                    for rank, result in self._switch.receive(-1 - receiver, payload):
                        self._send(self.down[rank], rank, result)

    def _send(self, link: ShapedLink, receiver: int, payload: bytes) -> None:
        fate = link.carry(self.now_ns, len(payload))
        if fate is None or (self.random_loss and self._random.random() < self.random_loss):
            return
        at_ns, marked = fate
        if marked:
            payload = payload[:1] + bytes([payload[1] | Flag.ECN]) + payload[2:]
        self._order += 1
        heapq.heappush(self._events, (at_ns, self._order, receiver, payload))
