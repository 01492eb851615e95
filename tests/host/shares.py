"""Several WorkerCores, each with a share of the lanes, that act as one worker."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from ina._native.host import (
    LaneResult,
    LaneSnapshot,
    Mismatch,
    PendingTensor,
    SubmissionOrder,
    WorkerCore,
    WorkerCounters,
    merge_lanes,
    merge_pending,
)
from ina.protocol.codec import decode

_COUNTS = [name for name in dir(WorkerCounters) if not name.startswith("_")]


class Shares:
    """What a transport with as many threads does; here all in one."""

    def __init__(self, cores: list[WorkerCore], values_per_packet: int) -> None:
        self.cores = cores
        self._order = SubmissionOrder(cores[0].window, values_per_packet)
        self._done: Counter[int] = Counter()
        self.window = cores[0].window

    def _owner(self, lane: int) -> WorkerCore:
        return self.cores[lane * len(self.cores) // self.window]

    def submit(self, *request: Any) -> None:
        *tensor, now_ns = request
        placed = self._order.next(*tensor)  # once, for all
        for core in self.cores:
            core.submit_placed(placed, now_ns)

    def poll_transmit(self, now_ns: int, capacity: int = 64) -> list[bytes]:
        return [packet for core in self.cores for packet in core.poll_transmit(now_ns, capacity)]

    def on_result(self, payload: bytes, now_ns: int) -> None:
        header, _ = decode(payload)
        self._owner(header.seq % self.window).on_result(payload, now_ns)

    def next_deadline_ns(self, now_ns: int) -> int | None:
        deadlines = [core.next_deadline_ns(now_ns) for core in self.cores]
        return min((at_ns for at_ns in deadlines if at_ns is not None), default=None)

    @property
    def mismatch(self) -> Mismatch | None:
        return next((core.mismatch for core in self.cores if core.mismatch), None)

    def take_completions(self) -> list[int]:
        """Tensors that all cores are done with."""
        done = []
        for core in self.cores:
            for tensor in core.take_completions():
                self._done[tensor] += 1
                if self._done[tensor] == len(self.cores):
                    done.append(tensor)
        return done

    def lanes(self, now_ns: int) -> LaneSnapshot:
        return merge_lanes([core.lanes(now_ns) for core in self.cores])

    def lane_result(self, lane: int) -> LaneResult:
        return self._owner(lane).lane_result(lane)

    def pending(self) -> list[PendingTensor]:
        return merge_pending([core.pending() for core in self.cores])

    def put_result(self, lane: int, seq: int, data: bytes) -> None:
        self._owner(lane).put_result(lane, seq, data)

    @property
    def counters(self) -> Any:
        """Sums; what is submitted each core is told."""
        sums = {name: sum(getattr(core.counters, name) for core in self.cores) for name in _COUNTS}
        sums["tensors_submitted"] = self.cores[0].counters.tensors_submitted
        return SimpleNamespace(**sums)
