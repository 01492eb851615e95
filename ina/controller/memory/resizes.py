"""Which resizes of running jobs are worth it, how many a job has left, and which ranges move so
that one finds room. Pure.

Each change that a job has used up makes the next one dearer: the slots that it has count more with
it than with others, and it is to gain more by another number of them. One that has few left is not
made smaller any more, so that it does not end with least.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ina.controller.memory.allocators import best_start, gaps
from ina.controller.memory.demand import Demand, usable
from ina.controller.memory.policies import Sizes
from ina.trees.slots import SlotRange

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


MOST_MOVES = 3
"""Ranges that are moved for one."""


@dataclass(frozen=True)
class Clearing:
    """Slots that are free once some have moved."""

    block: range
    moves: tuple[str, ...]
    """Jobs, the largest first: each finds room outside of the block."""


def clearing(
    slots: int,
    total: int,
    movable: Mapping[str, SlotRange],
    fixed: Collection[SlotRange],
    own: SlotRange | None,
) -> Clearing | None:
    """The block of ``slots`` that takes the least moving; None: none is worth it, or there is none.

    ``movable``: by job; ``fixed``: of others; ``own``: of the job that wants them, which may be in
    the block. What moves is at most half of the block.
    """
    found: list[tuple[int, Clearing]] = []
    for first in range(0, total - slots + 1, slots):
        block = range(first, first + slots)
        if any(_meets(block, taken) for taken in fixed):
            continue
        inside = {name: taken for name, taken in movable.items() if _meets(block, taken)}
        moved = sum(taken.reserved for taken in inside.values())
        if not inside or len(inside) > MOST_MOVES or 2 * moved > slots:
            continue
        names = sorted(inside, key=lambda name: -inside[name].reserved)
        if _fit_elsewhere([inside[name] for name in names], block, total, movable, fixed, own):
            found.append((moved, Clearing(block, tuple(names))))
    return min(found, key=lambda it: it[0])[1] if found else None


def _fit_elsewhere(
    moving: list[SlotRange],
    block: range,
    total: int,
    movable: Mapping[str, SlotRange],
    fixed: Collection[SlotRange],
    own: SlotRange | None,
) -> bool:
    """With the former ranges still in use: all move at once."""
    busy = [*movable.values(), *fixed, SlotRange(block.start, len(block), len(block))]
    busy += [own] if own is not None else []
    for taken in moving:
        first = best_start(gaps(total, busy), taken.slots)
        if first is None:
            return False
        busy.append(SlotRange(first, taken.slots, taken.slots))
    return True


def _meets(block: range, taken: SlotRange) -> bool:
    return taken.first < block.stop and block.start < taken.end
