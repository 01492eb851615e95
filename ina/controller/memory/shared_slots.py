"""The part of a switch's slots that jobs share, and which arc of it each may claim slots of.

Arcs may overlap: who finds a slot taken has its part summed further up. They overlap as little, and
as evenly, as can be when they are given; later ones are not moved for that.
"""

from __future__ import annotations

from collections.abc import Iterable

from ina.trees.slots import SlotRange


class SharedSlots:
    """Of one switch: slots ``first`` .. ``first + total - 1``. Not thread-safe."""

    def __init__(self, first: int, total: int) -> None:
        self.first = first
        self.total = total
        self._taken: list[SlotRange] = []

    def take(self, slots: int, claimable: int) -> SlotRange:
        """An arc of at most ``claimable`` slots for a job that has ``slots`` at its aggregator."""
        wanted = max(0, min(claimable, self.total))
        inside = [range(it.first - self.first, it.end - self.first) for it in self._taken]
        first = self.first + least_shared(self.total, wanted, inside)
        taken = SlotRange(first, slots, wanted)
        self._taken.append(taken)
        return taken

    def claim(self, taken: SlotRange) -> None:
        """Takes exactly this arc: a job had it before the controller started."""
        self._taken.append(taken)

    def give_back(self, taken: SlotRange) -> None:
        """Lets go of an arc that :meth:`take` returned or :meth:`claim` took."""
        self._taken.remove(taken)

    def used(self) -> int:
        """Slots that some job may claim."""
        return len({slot for it in self._taken for slot in range(it.first, it.end)})


def least_shared(total: int, slots: int, arcs: Iterable[range]) -> int:
    """Where an arc of so many of ``total`` slots overlaps with ``arcs`` as little as can be.

    Of several such places one where no slot is shared by more jobs than must be, then the lowest.
    """
    taken = [arc for arc in arcs if arc]
    # Shifting it changes what it overlaps with evenly, but for where an end of it meets another's.
    ends = {end for arc in taken for end in (arc.start, arc.stop)}
    starts = {0, total - slots, *ends, *(end - slots for end in ends)}
    steps = sorted({0, *ends})

    def shared(first: int) -> tuple[int, int, int]:
        own = range(first, first + slots)
        overlap = sum(_common(own, arc) for arc in taken)
        # How many have a slot changes at ends alone.
        depths = (sum(at in arc for arc in taken) for at in (first, *steps) if at in own)
        return overlap, max(depths, default=0), first

    return min(shared(first) for first in starts if 0 <= first <= total - slots)[2]


def _common(one: range, other: range) -> int:
    return max(0, min(one.stop, other.stop) - max(one.start, other.start))
