"""How long jobs that share slots wait for one that another has, by their importance. Pure.

Jobs of one priority wait for a slot until nothing was heard of its owner for an age. A more
important job waits less for a less important one, down to not at all, and the other way round more.
Nobody's sum is lost: what is put out of a slot goes up incomplete.
"""

from __future__ import annotations

from typing import NamedTuple

STEPS = 4
"""So many levels of priority make all the difference; jobs below 0 have 0, those above so many."""


class Patience(NamedTuple):
    """Of one job, as a switch has it."""

    age_us: int
    """It takes another's slot of which, as it seems, nothing was heard for so long."""
    lead_us: int
    """Its own slots seem to be unheard of for so much longer than they are."""

    @classmethod
    def of(cls, priority: int, age_us: int) -> Patience:
        """``age_us``: among jobs of the same priority."""
        gain = age_us * min(max(priority, 0), STEPS) // STEPS
        return cls(2 * age_us - gain, age_us - gain)

    def towards(self, other: Patience) -> int:
        """Microseconds that it waits, since it was heard of last, for a slot of the other."""
        return max(0, self.age_us - other.lead_us)
