"""Windows in Python that the tests name: ``tests.worlds.virtual.windows:Still``."""

from __future__ import annotations

import random
import sys
import threading
from typing import Any

from ina.congestion import Batch, Pace, Window


class Still(Window):
    """As `fixed` with all that the job's slots allow."""

    def on_batch(self, batch: Batch) -> None:
        """Nothing changes it."""


class Kept(Window):
    """Keeps what it is told, of all its windows, in the order in which it came."""

    batches: list[Batch] = []  # noqa: RUF012
    threads: set[str] = set()  # noqa: RUF012
    largest_of: list[int] = []  # noqa: RUF012

    def __init__(self, largest: int, *, packets: float = 0, gap_ns: float = 0) -> None:
        super().__init__(largest)
        self.packets = packets or largest
        self.pace = Pace(gap_ns, 2)
        self.largest_of.append(largest)

    def on_batch(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.threads.add(threading.current_thread().name)

    @classmethod
    def forget(cls) -> None:
        for kept in (cls.batches, cls.threads, cls.largest_of):
            kept.clear()


class Aimd(Window):
    """Halves once a round trip in which a packet was marked or lost, else adds one."""

    def __init__(self, largest: int) -> None:
        super().__init__(largest)
        self.calm_from_ns = 0

    def on_batch(self, batch: Batch) -> None:
        if batch.now_ns < self.calm_from_ns:
            return
        if batch.marked or batch.losses:
            self.packets = max(1.0, self.packets / 2)
            self.calm_from_ns = batch.now_ns + batch.mean_ns
        else:
            self.packets = min(self.largest, self.packets + batch.answers / self.packets)


class Restless(Window):
    """Says any number, and any pace, each time."""

    def __init__(self, largest: int, *, seed: int = 0) -> None:
        super().__init__(largest)
        self.random = random.Random(seed)

    def on_batch(self, batch: Batch) -> None:
        self.packets = self.random.choice((1, 1.5, 2, self.largest, 10 * self.largest))
        self.pace = Pace(self.random.choice((0, 100, 5_000)), self.random.randint(1, 4))


class Broken(Window):
    """Goes wrong in its third batch, in one of several ways."""

    wrong: tuple[Any, ...] = (0, 0.99, -3, float("nan"), "many", None, True)
    paces: tuple[Any, ...] = ((0,), (-1, 1), (float("inf"), 1), (0, 0), 5, ("a", 1), None)
    calls = 0  # of all

    def __init__(self, largest: int, *, packets: int = -1, pace: int = -1, leaves: int = 0) -> None:
        super().__init__(largest)
        self.packets = 3
        self.says, self.paces_so, self.leaves = packets, pace, leaves
        self.batches = 0

    def on_batch(self, batch: Batch) -> None:
        Broken.calls += 1
        self.batches += 1
        if self.batches < 3:
            return
        if self.says >= 0:
            self.packets = self.wrong[self.says]
        elif self.paces_so >= 0:
            self.pace = self.paces[self.paces_so]
        elif self.leaves:
            sys.exit(7)
        else:
            print(1 // (batch.answers - batch.answers))


class NeverMade(Window):
    """Cannot be constructed."""

    def __init__(self, largest: int) -> None:
        super().__init__(largest)
        self.packets = largest / 2

    def on_batch(self, batch: Batch) -> None:
        """Is never called."""


class Unfinished(Window):
    """Lacks what decides."""


class NoWindow:
    """Of another kind."""
