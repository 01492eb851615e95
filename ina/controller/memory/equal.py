"""Policy ``equal``: the same for all, but no more than is of use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ina.controller.memory.demand import Demand
from ina.controller.memory.policy import Sizes
from ina.controller.memory.shares import Shares


class Equal:
    """Max-min fair: doubles whoever has least, until nothing is left or of use.

    Guarantee: no job can get more of use without one that has no more than it getting less. Source:
    water-filling, as for rates of links, with powers of two for levels.
    """

    name: ClassVar[str] = "equal"
    resizes: ClassVar[bool] = True

    def sizes(self, jobs: Sequence[Demand], total: int) -> Sizes:
        """See :meth:`Policy.sizes`."""
        jobs = self.order(jobs)
        shares = Shares(jobs, total)
        shares.level(jobs)
        return shares.slots

    def order(self, waiting: Sequence[Demand]) -> list[Demand]:
        """See :meth:`Policy.order`: first come, first served."""
        return sorted(waiting, key=lambda job: (job.since_s, job.name))
