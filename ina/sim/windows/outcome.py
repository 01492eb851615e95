"""What an algorithm reached in a cell, over all seeds, and which promises that keeps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ina.sim.windows.cell import Cell, Family, Measured, Promise, Series
from ina.sim.windows.measure import Mean, mean_of


@dataclass(frozen=True)
class Verdict:
    """On one promise."""

    promise: str
    value: float
    """The mean of the metric, or of its multiple of the other algorithm's; not a number where
    either is missing."""
    holds: bool | None
    """None: the algorithm that it is relative to was not run."""


@dataclass(frozen=True)
class Outcome:
    """Of one cell and one algorithm."""

    family: str
    cell: str
    algorithm: str
    limit_gbit: float
    """What no algorithm exceeds, of values;"""
    limit_by: str
    """and why: ``link`` or ``slots``."""
    metrics: dict[str, Mean]
    verdicts: list[Verdict]
    errors: list[str]
    """One line for each seed whose run failed."""

    @property
    def is_broken(self) -> bool:
        """Whether a promise is, or a run failed."""
        return bool(self.errors) or any(verdict.holds is False for verdict in self.verdicts)


@dataclass
class Runs:
    """Of one cell and one algorithm, by seed."""

    done: dict[int, Measured] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)

    @property
    def series(self) -> Series | None:
        """Of the first seed that did not fail."""
        return self.done[min(self.done)].series if self.done else None

    @property
    def completions_us(self) -> list[float]:
        """Of short flows, of all seeds together."""
        return [time_us for seed in sorted(self.done) for time_us in self.done[seed].completions_us]

    def means(self) -> dict[str, Mean]:
        """Of each metric."""
        runs = [self.done[seed] for seed in sorted(self.done)]
        names = runs[0].metrics if runs else {}
        return {name: mean_of([run.metrics[name] for run in runs]) for name in names}


def outcomes_of(family: Family, cell: Cell, runs: Mapping[str, Runs]) -> list[Outcome]:
    """``runs``: of the cell, by algorithm."""
    means = {algorithm: of.means() for algorithm, of in runs.items()}
    limit = cell.limit
    return [
        Outcome(
            family=family.name,
            cell=cell.name,
            algorithm=algorithm,
            limit_gbit=limit.goodput_gbit,
            limit_by=limit.by,
            metrics=means[algorithm],
            verdicts=judge(family.promises, algorithm, means),
            errors=[
                f"seed {seed}: {error}" for seed, error in sorted(runs[algorithm].failed.items())
            ],
        )
        for algorithm in runs
    ]


def judge(
    promises: Sequence[Promise], algorithm: str, means: Mapping[str, Mapping[str, Mean]]
) -> list[Verdict]:
    """``means``: of a cell, by algorithm and metric. A metric that is missing keeps no promise."""
    verdicts = []
    for promise in promises:
        if promise.metric not in means[algorithm]:
            verdicts.append(Verdict(promise.text, math.nan, holds=False))
            continue
        value = means[algorithm][promise.metric].mean
        if promise.relative_to:
            other = means.get(promise.relative_to, {}).get(promise.metric)
            if other is None or promise.relative_to == algorithm:
                verdicts.append(Verdict(promise.text, math.nan, holds=None))
                continue
            value = value / other.mean if other.mean else math.inf
        verdicts.append(Verdict(promise.text, value, promise.holds(value)))
    return verdicts
