"""Who gets which of the switch's slots: one interface, one class a policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ina.controller.errors import JobRequestError, NoRoomError

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


class MemoryPolicy(Protocol):
    """Shares out the slots of one switch. Not thread-safe."""

    total: int
    """Slots of the switch."""

    def take(self, job: str, wanted: int) -> SlotRange:
        """Returns the range for ``job``, which wants ``wanted`` slots (0: the policy's default).

        Raises :class:`NoRoomError` when all slots are in use, :class:`JobRequestError` when the
        policy never grants so many; both say the numbers.
        """
        ...

    def give_back(self, taken: SlotRange) -> None:
        """Frees a range that :meth:`take` returned."""
        ...

    def used(self) -> int:
        """Slots that no other job can have now."""
        ...


class StaticPool:
    """Ranges of one fixed size. A job that wants fewer slots uses the first of its range."""

    def __init__(self, total: int, range_slots: int) -> None:
        if range_slots % 2 or not MIN_JOB_SLOTS <= range_slots <= min(total, MAX_JOB_SLOTS):
            raise JobRequestError(
                f"slots of a job: {range_slots} is not an even number from {MIN_JOB_SLOTS} to"
                f" {min(total, MAX_JOB_SLOTS)} (the switch has {total})"
            )
        self.total = total
        self.range_slots = range_slots
        self._free = list(range(0, total - range_slots + 1, range_slots))
        self._ranges = len(self._free)

    def take(self, job: str, wanted: int) -> SlotRange:
        """See :meth:`MemoryPolicy.take`."""
        slots = wanted or self.range_slots
        if slots % 2 or slots < MIN_JOB_SLOTS:
            raise JobRequestError(f"job {job!r}: {slots} slots: not an even number, 2 or more")
        if slots > self.range_slots:
            raise JobRequestError(
                f"job {job!r}: {slots} slots: this controller gives a job at most"
                f" {self.range_slots} (jobs.slots in its configuration)"
            )
        if not self._free:
            raise NoRoomError(
                f"job {job!r}: no slots left: all {self._ranges} ranges of {self.range_slots}"
                f" slots are in use (the switch has {self.total})"
            )
        return SlotRange(self._free.pop(0), slots, self.range_slots)

    def give_back(self, taken: SlotRange) -> None:
        """See :meth:`MemoryPolicy.give_back`. The range goes to the end of the queue."""
        if taken.first in self._free:
            raise ValueError(f"slots {taken.first}.. are free already")
        self._free.append(taken.first)

    def used(self) -> int:
        """See :meth:`MemoryPolicy.used`."""
        return (self._ranges - len(self._free)) * self.range_slots
