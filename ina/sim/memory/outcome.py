"""What became of a trace's jobs under one policy."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Ended:
    """A job."""

    completion_s: float
    """From when it came to its end."""
    slowdown: float
    """That ÷ what it takes with all the slots that are of use to it."""
    missed: bool
    """Its deadline."""
    resizes: int


@dataclass(frozen=True)
class Outcome:
    """Of all jobs, of one seed or of several."""

    policy: str
    jobs: int
    mean_completion_s: float
    mean_slowdown: float
    p99_slowdown: float
    missed_share: float
    mean_resizes: float
    most_resizes: int
    decision_ms: float
    """The longest, of the machine that ran it; 0: there is no controller in it."""


def outcome(policy: str, ended: Sequence[Ended], decision_s: float = 0.0) -> Outcome:
    """Of one seed's jobs."""
    slowdowns = sorted(job.slowdown for job in ended)
    return Outcome(
        policy,
        len(ended),
        statistics.mean(job.completion_s for job in ended),
        statistics.mean(slowdowns),
        slowdowns[int(0.99 * len(slowdowns))],
        statistics.mean(job.missed for job in ended),
        statistics.mean(job.resizes for job in ended),
        max(job.resizes for job in ended),
        1e3 * decision_s,
    )


def of_seeds(outcomes: Sequence[Outcome]) -> Outcome:
    """The mean of several seeds; of what is the most, the most."""

    def mean(what: str) -> float:
        return float(statistics.mean(getattr(it, what) for it in outcomes))

    return Outcome(
        outcomes[0].policy,
        sum(it.jobs for it in outcomes),
        mean("mean_completion_s"),
        mean("mean_slowdown"),
        mean("p99_slowdown"),
        mean("missed_share"),
        mean("mean_resizes"),
        max(it.most_resizes for it in outcomes),
        max(it.decision_ms for it in outcomes),
    )
