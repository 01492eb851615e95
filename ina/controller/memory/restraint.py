"""How often a running job is resized: its changes are a resource, which it uses up. Pure.

Each that it has used up makes the next one dearer: the slots that it has count more with it than
with others, and it is to gain more by another number of them. One that has few left is not made
smaller any more, so that it does not end with least.
"""

from __future__ import annotations

from dataclasses import replace

from ina.controller.memory.demand import Demand, usable

MOST = 10
"""Changes that a job has."""
REFILL_S = 21_600.0
"""It gets one back after so long: six hours."""
LAST = 2
"""A job that has so many left may grow, but shrinks no more."""


class Restraint:
    """Of one job. Time is passed in."""

    def __init__(self) -> None:
        self._used = 0.0
        self._used_s = 0.0

    def changed(self, now_s: float) -> None:
        """It has other slots, wherever they are."""
        self._used, self._used_s = self.used(now_s) + 1.0, now_s

    def used(self, now_s: float) -> float:
        """Changes that it has used up, and not got back."""
        return max(0.0, self._used - (now_s - self._used_s) / REFILL_S)


def is_spent(changes: float) -> bool:
    """Whether none is left to who has used so many: a part of one is none."""
    return changes > MOST - 1


def is_last(changes: float) -> bool:
    """Whether few are."""
    return changes > MOST - 1 - LAST


def restrained(demand: Demand) -> Demand:
    """One that has few changes left keeps what it has, at least."""
    if not is_last(demand.changes):
        return demand
    return replace(demand, floor=max(demand.floor, usable(demand.slots)))
