"""Policy ``jct``: the least completion times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ina.controller.memory.demand import Demand
from ina.controller.memory.policy import Sizes
from ina.controller.memory.shares import Shares


class Jct:
    """The largest Σ rate ÷ remaining, as :meth:`Demand.value` has it.

    Slots go where they shorten what is left by the largest share: short jobs are done soon, and
    long ones, which hardly notice, run on what is left. Each has its floor. With the least Σ
    remaining time, long jobs would get them. Source: INAlloc's JCT-driven mode; shortest remaining
    first for what can be divided.
    """

    name: ClassVar[str] = "jct"
    resizes: ClassVar[bool] = True

    def sizes(self, jobs: Sequence[Demand], total: int) -> Sizes:
        """See :meth:`Policy.sizes`."""
        jobs = self.order(jobs)
        shares = Shares(jobs, total)
        shares.raise_by_gain(jobs, Demand.value)
        return shares.slots

    def order(self, waiting: Sequence[Demand]) -> list[Demand]:
        """See :meth:`Policy.order`: who would be done first."""
        return sorted(waiting, key=lambda job: (job.left_s(job.useful), job.since_s, job.name))
