"""Ranges that were cut beforehand."""

from __future__ import annotations

from ina.controller.memory.pool import SlotPool, check_even
from ina.trees.errors import JobRequestError
from ina.trees.slots import MAX_JOB_SLOTS, MIN_JOB_SLOTS, SlotRange


class StaticPool(SlotPool):
    """Ranges of one fixed size. A job that wants fewer slots uses the first of its range."""

    def __init__(self, total: int, range_slots: int) -> None:
        if range_slots % 2 or not MIN_JOB_SLOTS <= range_slots <= min(total, MAX_JOB_SLOTS):
            raise JobRequestError(
                f"slots of a job: {range_slots} is not an even number from {MIN_JOB_SLOTS} to"
                f" {min(total, MAX_JOB_SLOTS)} (the switch has {total})"
            )
        super().__init__(total)
        self.range_slots = range_slots
        self._order = list(range(0, total - range_slots + 1, range_slots))

    def cost(self, job: str, wanted: int) -> int:
        """See :meth:`Allocator.cost`: always a whole range."""
        check_even(job, wanted)
        if wanted > self.range_slots:
            raise JobRequestError(
                f"job {job!r}: {wanted} slots: this controller gives a job at most"
                f" {self.range_slots} (jobs.sizing, jobs.slots and jobs.count in its configuration)"
            )
        return self.range_slots

    def give_back(self, taken: SlotRange) -> None:
        """See :meth:`Allocator.give_back`. The range goes to the end of the queue."""
        super().give_back(taken)
        if taken.first in self._order:
            self._order.remove(taken.first)
            self._order.append(taken.first)

    def _starts(self, reserved: int, busy: list[SlotRange]) -> list[int]:
        return self._order

    def why_full(self, job: str, wanted: int) -> str:
        """See :meth:`Allocator.why_full`."""
        return (
            f"all {len(self._order)} ranges of {self.range_slots} slots are in use"
            f" (the switch has {self.total}{self._foreign()})"
        )
