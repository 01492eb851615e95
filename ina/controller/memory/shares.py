"""What the policies have in common: floors first, then more by doubling, whoever it brings most."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

from ina.controller.memory.demand import Demand

INCUMBENT = 1.1
"""Slots that a job has count so much more with it than with another: a change is to bring 10 %. As
much again for each change that the job has used up."""


class Shares:
    """Slots given out so far. Floors are given at once: to all that run, then in order."""

    def __init__(self, jobs: Sequence[Demand], total: int) -> None:
        """``jobs``: of those that do not run, first comes who is served first."""
        self.slots = dict.fromkeys((job.name for job in jobs), 0)
        self.free = total
        for job in sorted(jobs, key=lambda job: not job.slots):
            if job.slots or job.floor <= self.free:
                self.slots[job.name] = job.floor
                self.free -= job.floor

    def raise_to(self, job: Demand, slots: int) -> bool:
        """Gives it so many if they are there and it has any; whether it has them now."""
        has = self.slots[job.name]
        if not has:
            return False
        if slots > has:
            if slots - has > self.free:
                return False
            self.slots[job.name] = slots
            self.free -= slots - has
        return True

    def raise_by_gain(self, jobs: Iterable[Demand], value: Callable[[Demand, int], float]) -> None:
        """Gives what is left to whom it brings most, a slot: the largest sum of ``value``.

        Greedy by gain ÷ slots. With ``value`` concave in slots, and any number of them allowed,
        that is exact; powers of two make it a knapsack, where what does not fit goes to the next.
        """
        heap: list[tuple[float, float, int, Demand, int]] = []
        for rank, job in enumerate(jobs):
            if self.slots[job.name]:
                _push(heap, rank, job, self.slots[job.name], value)
        while heap and self.free > 0:
            _, _, rank, job, slots = heapq.heappop(heap)
            if self.raise_to(job, slots):
                _push(heap, rank, job, slots, value)

    def level(self, jobs: Iterable[Demand]) -> None:
        """Doubles whoever has least, until nothing is left or of use: max-min fair."""
        heap = [(self.slots[job.name], job.since_s, rank, job) for rank, job in enumerate(jobs)]
        heap = [it for it in heap if it[0]]
        heapq.heapify(heap)
        while heap and self.free > 0:
            slots, since_s, rank, job = heapq.heappop(heap)
            if slots < job.useful and self.raise_to(job, 2 * slots):
                heapq.heappush(heap, (2 * slots, since_s, rank, job))


def _push(
    heap: list[tuple[float, float, int, Demand, int]],
    rank: int,
    job: Demand,
    has: int,
    value: Callable[[Demand, int], float],
) -> None:
    """Its next size, where there is one that is of use."""
    if has >= job.useful:
        return
    gain = (value(job, 2 * has) - value(job, has)) / has
    if 2 * has <= job.slots:
        gain *= INCUMBENT ** (1.0 + job.changes)
    heapq.heappush(heap, (-gain, job.since_s, rank, job, 2 * has))


def first_come(
    jobs: Iterable[Demand], total: int, wanted: Callable[[Demand], int]
) -> dict[str, int]:
    """What each wants, in this order; those that run keep what they have."""
    given: dict[str, int] = {}
    for job in jobs:
        slots = job.slots or wanted(job)
        given[job.name] = slots if job.slots or slots <= total else 0
        total -= given[job.name]
    return given
