"""Policy ``priority``: the important first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import ClassVar

from ina.controller.memory.demand import Demand
from ina.controller.memory.policy import Sizes
from ina.controller.memory.shares import Shares


class Priority:
    """By priority, highest first: all that is of use, but the floors of those below.

    Those of one priority share as ``equal`` has it. Guarantee: a job never has less for the sake
    of one that is less important. Source: ESA, which evicts packet by packet; here lower ones are
    resized down to their floors.
    """

    name: ClassVar[str] = "priority"
    resizes: ClassVar[bool] = True

    def sizes(self, jobs: Sequence[Demand], total: int) -> Sizes:
        """See :meth:`Policy.sizes`."""
        jobs = self.order(jobs)
        shares = Shares(jobs, total)
        for _, alike in groupby(jobs, key=lambda job: job.priority):
            shares.level(alike)
        return shares.slots

    def order(self, waiting: Sequence[Demand]) -> list[Demand]:
        """See :meth:`Policy.order`: by priority, then first come, first served."""
        return sorted(waiting, key=lambda job: (-job.priority, job.since_s, job.name))
