"""Many measurements of one thing: their median and their quartiles."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """In the unit of what was measured."""

    median: float
    low: float
    """First quartile: a quarter of the measurements is below."""
    high: float
    """Third quartile."""
    count: int

    @property
    def width(self) -> float:
        """Between the quartiles."""
        return self.high - self.low


def spread(samples: Sequence[float]) -> Spread:
    """Of one sample or more; with fewer than three the quartiles are the extremes."""
    if len(samples) < 3:
        return Spread(statistics.median(samples), min(samples), max(samples), len(samples))
    low, median, high = statistics.quantiles(samples, n=4, method="inclusive")
    return Spread(median, low, high, len(samples))


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that at least ``share`` (0..1) of all do not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
