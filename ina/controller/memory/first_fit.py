"""Ranges of any size."""

from __future__ import annotations

from collections.abc import Iterator

from ina.controller.memory.pool import SlotPool, check_even
from ina.trees.errors import JobRequestError
from ina.trees.slots import MAX_JOB_SLOTS, SlotRange


class FirstFit(SlotPool):
    """Ranges of the size that a job asks for, each the first that is free."""

    def __init__(self, total: int, default_slots: int) -> None:
        super().__init__(total)
        self.default_slots = default_slots

    def cost(self, job: str, wanted: int) -> int:
        """See :meth:`Allocator.cost`: what it asks for."""
        check_even(job, wanted)
        slots = wanted or self.default_slots
        if slots > min(self.total, MAX_JOB_SLOTS):
            raise JobRequestError(f"job {job!r}: {slots} slots: the switch has {self.total}")
        return slots

    def _starts(self, reserved: int, busy: list[SlotRange]) -> Iterator[int]:
        yield 0
        yield from sorted(taken.end for taken in busy)

    def why_full(self, job: str, wanted: int) -> str:
        """See :meth:`Allocator.why_full`."""
        reserved, used = self.cost(job, wanted), self.used()
        return (
            f"no {reserved} free ones are side by side ({used} of {self.total} are in use"
            f"{self._foreign()})"
        )
