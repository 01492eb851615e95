"""Ranges of a switch's slots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MIN_JOB_SLOTS = 2
"""One lane: a job alternates between the two slots (versions) of each lane."""

MAX_JOB_SLOTS = 0xFFFE
"""The header's slot field and the job table's ``slots`` have 16 bits; a job has an even number."""


@dataclass(frozen=True)
class SlotRange:
    """Physical slots ``first`` .. ``first + reserved - 1``; the job uses ``slots`` of them."""

    first: int
    slots: int
    reserved: int

    @property
    def end(self) -> int:
        """One after the last slot that is reserved."""
        return self.first + self.reserved


def gaps(total: int, busy: Iterable[SlotRange]) -> list[range]:
    """The slots of ``total`` that are in none of ``busy``, in order; ranges may overlap."""
    found: list[range] = []
    first = 0
    for taken in sorted(busy, key=lambda it: it.first):
        if taken.first > first:
            found.append(range(first, min(taken.first, total)))
        first = max(first, taken.end)
        if first >= total:
            return found
    found.append(range(first, total))
    return found


def is_free(first: int, slots: int, busy: Iterable[SlotRange]) -> bool:
    """Whether none of these slots are in a range of ``busy``."""
    return all(first >= taken.end or first + slots <= taken.first for taken in busy)
