"""Looks at a queue again and again, so that what went through it is known of any time."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ina.bench.marking_queue import Counts, MarkingQueue, QueueCounts

_EVERY_S = 0.01
_COUNTS = ("packets", "bytes", "marked", "dropped")


@dataclass(frozen=True)
class Passed:
    """In some time."""

    udp: Counts
    rest: Counts
    waiting_bytes: tuple[int, ...]
    """At even intervals."""


class QueueWatch:
    """A context manager: looks until its block ends."""

    def __init__(self, queue: MarkingQueue) -> None:
        self._queue = queue
        self._looks: list[tuple[float, QueueCounts]] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="queue-watch")

    def __enter__(self) -> QueueWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self._looks.append((time.monotonic(), self._queue.look()))
            if self._done.wait(_EVERY_S):
                return

    def between(self, edges_s: Sequence[float]) -> list[Passed]:
        """From each of these times of the monotonic clock to the next."""
        at_s = [at_s for at_s, _ in self._looks]
        found = []
        for from_s, to_s in itertools.pairwise(edges_s):
            inside = [look.waiting_bytes for at, look in self._looks if from_s <= at < to_s]
            udp = _grown(at_s, [look.udp for _, look in self._looks], from_s, to_s)
            rest = _grown(at_s, [look.rest for _, look in self._looks], from_s, to_s)
            found.append(Passed(udp, rest, tuple(inside)))
        return found


def _grown(at_s: Sequence[float], counts: Sequence[Counts], from_s: float, to_s: float) -> Counts:
    grown = []
    for name in _COUNTS:
        then, now = np.interp([from_s, to_s], at_s, [getattr(it, name) for it in counts])
        grown.append(round(now - then))
    return Counts(*grown)
