"""Numbers out of what was seen: rates, fairness, convergence, queues, percentiles, confidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ina.sim.windows.history import Floats, History

_STUDENT_975 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Student's t for an interval of 95 %, by degrees of freedom from 1 on. More have the last one: the
interval is 4 % too wide at most. SciPy is no dependency of ina's."""


@dataclass(frozen=True)
class Mean:
    """Of a metric, over seeds."""

    mean: float
    half_width: float
    """Of the 95 % confidence interval by Student's t; not a number where there is one seed."""
    seeds: int


def mean_of(values: Sequence[float]) -> Mean:
    """Of at least one value; infinite ones make the mean infinite."""
    found = np.array(values, float)
    if len(found) == 1 or not np.isfinite(found).all():
        return Mean(float(found.mean()), math.nan, len(found))
    error = float(found.std(ddof=1)) / math.sqrt(len(found))
    student = _STUDENT_975[min(len(found) - 1, len(_STUDENT_975)) - 1]
    return Mean(float(found.mean()), student * error, len(found))


def jain(shares: Iterable[float]) -> float:
    """Jain's index of fairness: 1 if all are equal, 1/n if one has all. 0 where nobody has any."""
    found = np.array(list(shares), float)
    squares = float((found**2).sum()) * len(found)
    return float(found.sum()) ** 2 / squares if squares else 0.0


def rate_gbit(
    at_s: Floats, done_bytes: Floats, from_s: float = 0.0, to_s: float = math.inf
) -> float:
    """Of a count that grows, between the looks in that time. 0 where they are fewer than two."""
    inside = np.flatnonzero((at_s >= from_s) & (at_s <= to_s))
    if len(inside) < 2:
        return 0.0
    first, last = inside[0], inside[-1]
    return float((done_bytes[last] - done_bytes[first]) * 8e-9 / (at_s[last] - at_s[first]))


def rates_gbit(at_s: Floats, done_bytes: Floats, edges_s: Floats) -> Floats:
    """The same between each two of ``edges_s``, of shape (edges - 1,); counts are straight lines
    between looks."""
    return np.diff(np.interp(edges_s, at_s, done_bytes)) * 8e-9 / np.diff(edges_s)


def grown(at_s: Floats, count: Floats, from_s: float) -> float:
    """By how much a count grew from then to the end."""
    first = min(int(np.searchsorted(at_s, from_s)), len(at_s) - 1)
    return float(count[-1] - count[first])


def converged_s(
    at_s: Floats,
    counts: Sequence[Floats],
    *,
    from_s: float,
    to_s: float,
    bin_s: float,
    index: float,
) -> float:
    """How long after ``from_s`` the shares of all are fair: Jain's index of their rates over two
    times ``bin_s``, one behind the other, is ``index`` or more. Infinite: not before ``to_s``."""
    edges_s = np.arange(from_s, to_s + bin_s / 2, bin_s)
    rates = np.array([rates_gbit(at_s, count, edges_s) for count in counts])
    fair = [jain(rates[:, i]) >= index for i in range(rates.shape[1])]
    for i in range(1, len(fair)):
        if fair[i - 1] and fair[i]:
            return float(edges_s[i] - from_s)  # where the second one begins
    return math.inf


def queue_bytes(
    history: History, from_s: float, percent: float, ports: Iterable[str] = ()
) -> float:
    """That percentile over time of the port where it is largest; of ``ports``, or of all."""
    after = history.at_s >= from_s
    names = list(ports) or list(history.ports)
    return max(
        float(np.percentile(history.ports[name].waiting_bytes[after], percent)) for name in names
    )


def loss_share(history: History, from_s: float) -> float:
    """Packets that found a queue full, of those that came to it, at all ports together."""
    ports = history.ports.values()
    dropped = sum(grown(history.at_s, port.dropped, from_s) for port in ports)
    offered = sum(grown(history.at_s, port.offered, from_s) for port in ports)
    return dropped / offered if offered else 0.0


def percentile(values: Sequence[float] | NDArray[np.float64], percent: float) -> float:
    """By the nearest rank; not a number where there are none."""
    found = np.sort(np.array(values, float))
    return (
        float(found[max(math.ceil(len(found) * percent / 100), 1) - 1]) if len(found) else math.nan
    )
