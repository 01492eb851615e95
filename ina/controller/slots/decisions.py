"""Why jobs have as many slots as they have: a line of the log each, and kept for a while.

They are kept in memory, as the last events of jobs are: a controller that is started again begins
anew, and the log has all of them.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ina.log import fields

_log = logging.getLogger(__name__)

KEPT = 2000
"""Last decisions that are kept, of all jobs together: 100 jobs with ten resizes each, twice."""


@dataclass(frozen=True)
class Decision:
    """About one job."""

    unix_s: float
    job: str
    what: str
    """``grant``, ``wait``, ``refuse``, ``grow``, ``shrink``, ``move`` or ``fail``: it was to be."""
    slots_before: int
    slots: int
    """At each of its switches; of a failure, those that it was to have."""
    reason: str

    def __str__(self) -> str:
        change = f"{self.slots_before} -> {self.slots}" if self.slots_before else f"{self.slots}"
        sizes = f" {change} slots" if self.slots_before or self.slots else ""
        return f"job {self.job!r}: {self.what}{sizes}: {self.reason}"


class Decisions:
    """The last of them, oldest first."""

    def __init__(self, unix_clock: Callable[[], float]) -> None:
        self.forgotten = 0
        """Older ones that are not kept any more."""
        self._unix_clock = unix_clock
        self._kept: deque[Decision] = deque(maxlen=KEPT)

    def add(self, job: str, what: str, reason: str, *, before: int = 0, slots: int = 0) -> None:
        """Logs one, and keeps it."""
        decision = Decision(self._unix_clock(), job, what, before, slots, reason)
        self.forgotten += len(self._kept) == KEPT
        self._kept.append(decision)
        about = fields(job_name=job, decision=what, slots_before=before, slots=slots, reason=reason)
        _log.info("memory: %s", decision, extra=about)

    def of(self, job: str) -> list[Decision]:
        """Those about a job; empty: about all."""
        return [it for it in self._kept if job in ("", it.job)]
