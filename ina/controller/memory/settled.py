"""Hysteresis: which of a policy's changes are worth a resize. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ina.controller.memory.demand import Demand
from ina.controller.memory.policy import Sizes

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
