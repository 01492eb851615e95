"""What was learned of jobs, for those that nobody knows yet: one that has come before, or others.

Kept in memory, as long as the controller's term. Pure.
"""

from __future__ import annotations

import statistics
from collections import OrderedDict

from ina.controller.memory.demand import StepModel

MOST = 1024
"""Names that are kept: those that were heard of last."""
TYPICAL_OF = 63
"""So many of the last ones say what is typical."""
LEAST = 3
"""Fewer say nothing."""


class Familiar:
    """Steps of jobs, by name."""

    def __init__(self) -> None:
        self._steps: OrderedDict[str, StepModel] = OrderedDict()
        self._typical: StepModel | None = None

    def learn(self, name: str, steps: StepModel) -> None:
        """So the steps of this job are, as it is known now."""
        self._steps[name] = steps
        self._steps.move_to_end(name)
        if len(self._steps) > MOST:
            self._steps.popitem(last=False)
        self._typical = None

    def guess(self, name: str) -> StepModel | None:
        """What a job's steps are before any were seen: as when it ran last, else what is typical;
        None: nobody can say."""
        return self._steps.get(name) or self._of_others()

    def _of_others(self) -> StepModel | None:
        """The median of each number."""
        if self._typical is None and len(self._steps) >= LEAST:
            names = list(self._steps)[-TYPICAL_OF:]
            known = [self._steps[name] for name in names]
            self._typical = StepModel(
                statistics.median(it.compute_s for it in known),
                statistics.median(it.overlap_s for it in known),
                statistics.median(it.bytes for it in known),
                statistics.median(it.lane_bytes_per_s for it in known),
                statistics.median(it.line_bytes_per_s for it in known),
                statistics.median(it.beside_bytes_per_s for it in known),
            )
        return self._typical
