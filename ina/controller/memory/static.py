"""Policy ``static``: the same for all, used or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ina.controller.memory.demand import Demand
from ina.controller.memory.policy import Sizes
from ina.controller.memory.shares import first_come


class Static:
    """``share`` slots each, first come, first served; whoever finds none waits.

    Guarantee: what a job has does not depend on others. Source: SwitchML's and today's way.
    """

    name: ClassVar[str] = "static"
    resizes: ClassVar[bool] = False

    def __init__(self, share: int) -> None:
        self.share = share

    def sizes(self, jobs: Sequence[Demand], total: int) -> Sizes:
        """See :meth:`Policy.sizes`."""
        return first_come(self.order(jobs), total, lambda _job: self.share)

    def order(self, waiting: Sequence[Demand]) -> list[Demand]:
        """See :meth:`Policy.order`: first come, first served."""
        return sorted(waiting, key=lambda job: (not job.slots, job.since_s, job.name))
