"""Policy ``asked``: what a job asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ina.controller.memory.demand import Demand
from ina.controller.memory.policy import Sizes
from ina.controller.memory.shares import first_come


class Asked:
    """What it asked for, or ``default`` slots, first come, first served; the next one waits.

    Guarantee: a job that runs has what it asked for. Nobody knows better what it needs, if it tells
    the truth: where slots are short, all ask for more than they use.
    """

    name: ClassVar[str] = "asked"
    resizes: ClassVar[bool] = False

    def __init__(self, default: int) -> None:
        self.default = default

    def sizes(self, jobs: Sequence[Demand], total: int) -> Sizes:
        """See :meth:`Policy.sizes`."""
        return first_come(self.order(jobs), total, lambda job: job.asked or self.default)

    def order(self, waiting: Sequence[Demand]) -> list[Demand]:
        """See :meth:`Policy.order`: first come, first served."""
        return sorted(waiting, key=lambda job: (not job.slots, job.since_s, job.name))
