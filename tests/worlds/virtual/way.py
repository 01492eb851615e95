"""A worker's way to a switch and back, with one queue on it, driven by hand: for windows alone."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from ina._native.host import LossRecovery, RtoLimits
from ina.congestion import Congestion


@dataclass
class Way:
    """One packet after another through a link, from a worker that always has more to send.

    Sums are complete when our own packet comes (``was_last``), or ``late_ns`` later, by another's.
    """

    congestion: Congestion
    lanes: int = 512
    packet_ns: int = 1_000  # that the link takes for one
    way_ns: int = 100_000  # there and back, without queue and link
    mark_above: int = 20  # packets in the queue
    room: int = 10_000  # of the queue; what finds it full is lost
    lose_every: int = 0  # each such packet is lost, too; 0: none
    was_last: Callable[[int], bool] = lambda _now_ns: True
    others_marked: Callable[[int], bool] = lambda _now_ns: False
    late_ns: Callable[[int], int] = lambda _now_ns: 0
    now_ns: int = 0
    answers: int = 0
    marks: int = 0
    lost: int = 0
    windows: list[int] = field(default_factory=list)  # after each answer
    queues: list[int] = field(default_factory=list)  # that each packet found

    def __post_init__(self) -> None:
        self.recovery = LossRecovery(self.lanes, RtoLimits(), self.congestion.choice())
        self._free = list(range(self.lanes))
        self._order = 0
        self._link_ns = 0  # busy until then
        self._events: list[tuple[int, int, int, bool, int]] = []  # when, order, lane, marked, copy

    def run(self, for_ns: int) -> None:
        """Lets so much time pass."""
        end_ns = self.now_ns + for_ns
        while True:
            self._send()
            paced_ns = self.recovery.paced_ns if self.recovery.has_room_for(self._order) else end_ns
            next_ns = self._events[0][0] if self._events else end_ns
            if paced_ns > self.now_ns:
                next_ns = min(next_ns, paced_ns)
            if next_ns >= end_ns:
                self.now_ns = end_ns
                return
            self.now_ns = next_ns
            while self._events and self._events[0][0] <= self.now_ns:
                _, _, lane, marked, copy = heapq.heappop(self._events)
                self.recovery.answered(
                    lane,
                    self.now_ns,
                    copy=copy,
                    marked=marked,
                    is_own=self.was_last(self.now_ns),
                )
                self._free.append(lane)
                self.answers += 1
                self.marks += marked
                self.windows.append(self.recovery.window_packets)
            for lane, copy in self.recovery.due(self.now_ns):
                self._put(lane, copy)

    def _send(self) -> None:
        recovery = self.recovery
        while self._free and recovery.has_room_for(self._order):
            if recovery.paced_ns > self.now_ns:
                return
            lane = self._free.pop()
            recovery.sent(lane, self._order, 0, self.now_ns)
            self._put(lane)
            self._order += 1

    def _put(self, lane: int, copy: int = 0) -> None:
        queue = max(0, self._link_ns - self.now_ns) // self.packet_ns
        self.queues.append(queue)
        if queue >= self.room or (self.lose_every and len(self.queues) % self.lose_every == 0):
            self.lost += 1
            return
        self._link_ns = max(self._link_ns, self.now_ns) + self.packet_ns
        at_ns = self._link_ns + self.way_ns + self.late_ns(self.now_ns)
        marked = queue >= self.mark_above or self.others_marked(self.now_ns)
        heapq.heappush(self._events, (at_ns, self._order, lane, marked, copy))

    @property
    def product(self) -> float:
        """Packets that are on the way when its queue is empty and its link busy."""
        return self.way_ns / self.packet_ns + 1
