"""Policy ``deadline``: as many deadlines met as can be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from ina.controller.memory.demand import Demand
from ina.controller.memory.policy import Sizes
from ina.controller.memory.shares import Shares

MARGIN, SPARE = 1.03, 1.1
"""So much longer a job may take than it seems now, if it is to grow or has none yet, for what it
loses in changes and to decisions that come late; and if it is to shrink. With what it has it may
take as long as there is: what is known of it is never exact, and it shall not go to and fro."""


class Deadline:
    """Earliest deadline first, each with the least that meets it; the rest as ``jct`` has it.

    A job that cannot meet its deadline even with all that is of use to it, or has none, has no
    claim: it is served from the rest. Guarantee: who has the earliest deadline of those that can
    be met, meets it. Source: INAlloc's deadline-driven mode; earliest deadline first.
    """

    name: ClassVar[str] = "deadline"
    resizes: ClassVar[bool] = True

    def sizes(self, jobs: Sequence[Demand], total: int) -> Sizes:
        """See :meth:`Policy.sizes`."""
        jobs = self.order(jobs)
        shares = Shares(jobs, total)
        for job in jobs:
            shares.raise_to(job, least(job))
        shares.raise_by_gain(jobs, Demand.value)
        return shares.slots

    def order(self, waiting: Sequence[Demand]) -> list[Demand]:
        """See :meth:`Policy.order`: earliest deadline first, then those that have none."""
        return sorted(
            waiting,
            key=lambda job: (
                math.inf if job.deadline_s is None else job.deadline_s,
                job.since_s,
                job.name,
            ),
        )


def least(job: Demand) -> int:
    """The fewest slots, a power of two, with which it meets its deadline; its floor: it cannot."""
    if job.deadline_s is None:
        return job.floor
    slots, useful = job.floor, job.useful
    while slots < useful and _margin(job, slots) * job.left_s(slots) > job.deadline_s:
        slots *= 2
    return slots if job.left_s(slots) <= job.deadline_s else job.floor


def _margin(job: Demand, slots: int) -> float:
    if slots == job.slots:
        return 1.0
    return SPARE if slots < job.slots else MARGIN
