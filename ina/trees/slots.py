"""Ranges of a switch's slots, and the lanes that they are."""

from __future__ import annotations

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


def lanes_of(slots: int) -> int:
    """How many lanes so many slots are: the largest power of two that has two slots each."""
    return 1 << max(0, (slots // 2).bit_length() - 1)
