"""Weighted max-min shares of things that jobs use together, each job several of them. Pure.

Nobody can have more without somebody having less who has, for its weight, no more already. So every
job has a bottleneck: something that is used up, and of whose users none has more for its weight.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

J = TypeVar("J", bound=Hashable)
R = TypeVar("R", bound=Hashable)


@dataclass(frozen=True)
class Demand(Generic[R]):
    """What one job would have."""

    weight: float
    """More than 0."""
    uses: Mapping[R, float]
    """Of each thing, what a rate of 1 takes of its capacity; more than 0."""


@dataclass(frozen=True)
class Share(Generic[R]):
    """What one job gets."""

    rate: float
    """Infinite where nothing that it uses is limited."""
    bottleneck: R | None
    """What limits it; None: nothing."""


def max_min(demands: Mapping[J, Demand[R]], capacities: Mapping[R, float]) -> dict[J, Share[R]]:
    """By job. What is not in ``capacities`` has no limit.

    All grow alike, for their weights, until something is used up: its users have their share then,
    and the others grow on. Of several at once the one that is first in ``capacities`` counts.
    """
    left = dict(capacities)
    growing = dict(demands)
    found: dict[J, Share[R]] = {}
    while growing:
        levels = {thing: _level(left[thing], thing, growing) for thing in left}
        tightest = min(levels, key=lambda thing: levels[thing], default=None)
        if tightest is None or levels[tightest] == math.inf:
            break
        for job in [job for job, it in growing.items() if tightest in it.uses]:
            demand = growing.pop(job)
            rate = demand.weight * levels[tightest]
            found[job] = Share(rate, tightest)
            for thing, part in demand.uses.items():
                if thing in left:
                    left[thing] = max(0.0, left[thing] - part * rate)
    found.update({job: Share(math.inf, None) for job in growing})
    return {job: found[job] for job in demands}


def _level(left: float, thing: R, growing: Mapping[J, Demand[R]]) -> float:
    """The rate of a weight of 1 at which those that still grow have used up what is left."""
    slope = sum(it.weight * it.uses.get(thing, 0.0) for it in growing.values())
    return left / slope if slope > 0 else math.inf
