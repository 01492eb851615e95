"""Which resizes of running jobs are worth it, and how many a job has left. Pure.

Each change that a job has used up makes the next one dearer: the slots that it has count more with
it than with others, and it is to gain more by another number of them. One that has few left is not
made smaller any more, so that it does not end with least.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ina.controller.memory.demand import Demand, usable
from ina.controller.memory.policies import Sizes

MOST = 10
"""Changes that a job has."""
REFILL_S = 21_600.0
"""It gets one back after so long: six hours."""
LAST = 2
"""A job that has so many left may grow, but shrinks no more."""


class Restraint:
    """Of one job. Time is passed in."""

    def __init__(self) -> None:
        self._used = 0.0
        self._used_s = 0.0

    def changed(self, now_s: float) -> None:
        """It has other slots, wherever they are."""
        self._used, self._used_s = self.used(now_s) + 1.0, now_s

    def used(self, now_s: float) -> float:
        """Changes that it has used up, and not got back."""
        return max(0.0, self._used - (now_s - self._used_s) / REFILL_S)


def is_spent(changes: float) -> bool:
    """Whether none is left to who has used so many: a part of one is none."""
    return changes > MOST - 1


def is_last(changes: float) -> bool:
    """Whether few are."""
    return changes > MOST - 1 - LAST


def restrained(demand: Demand) -> Demand:
    """One that has few changes left keeps what it has, at least."""
    if not is_last(demand.changes):
        return demand
    return replace(demand, floor=max(demand.floor, usable(demand.slots)))


WORTH = 1.1
"""A job is to grow when its steps take so much less time then, as a ratio. Each two changes that it
has used up raise the ratio by another ``WORTH``."""


def settled(jobs: Sequence[Demand], wanted: Sizes, total: int) -> dict[str, int]:
    """``wanted`` without the changes of running jobs that bring too little.

    Who would grow and gain less than 10 % stays as it is. Who is to shrink does as far as somebody
    needs the slots: those first that lose least by it.
    """
    sizes = dict(wanted)
    for job in jobs:
        if 0 < job.slots < sizes[job.name] and not pays(job, sizes[job.name]):
            sizes[job.name] = job.slots
    free = total - sum(sizes.values())
    shrinking = [job for job in jobs if sizes[job.name] < job.slots]
    for job in sorted(shrinking, key=_loss(wanted), reverse=True):
        if job.slots - sizes[job.name] <= free:
            free -= job.slots - sizes[job.name]
            sizes[job.name] = job.slots
    return sizes


def pays(job: Demand, slots: int) -> bool:
    """Whether a running job gains enough by more slots."""
    worth = math.pow(WORTH, 1.0 + job.changes / 2.0)
    return job.steps.step_s(job.slots) >= worth * job.steps.step_s(slots)


def _loss(wanted: Sizes) -> Callable[[Demand], float]:
    return lambda job: job.value(job.slots) - job.value(wanted[job.name])
