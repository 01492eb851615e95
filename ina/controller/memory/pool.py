"""What the allocators share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ina.controller.errors import NoRoomError
from ina.controller.memory.ranges import gaps, is_free
from ina.trees.errors import JobRequestError
from ina.trees.slots import MAX_JOB_SLOTS, SlotRange


class SlotPool:
    """Who has what. Allocators differ in :meth:`cost` and :meth:`_starts`."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._taken: list[SlotRange] = []
        self._blocked: list[SlotRange] = []
        self._held: tuple[SlotRange, str] | None = None

    def cost(self, job: str, wanted: int) -> int:
        """See :meth:`Allocator.cost`."""
        raise NotImplementedError

    def take(self, job: str, wanted: int) -> SlotRange:
        """See :meth:`Allocator.take`."""
        reserved = self.cost(job, wanted)
        first = self._find(reserved, [*self._taken, *self._blocked])
        if first is None:
            raise NoRoomError(f"job {job!r}: no slots left: {self.why_full(job, wanted)}")
        taken = SlotRange(first, wanted or reserved, reserved)
        self._taken.append(taken)
        return taken

    def take_range(self, job: str, slots: int, *, over: SlotRange | None = None) -> SlotRange:
        """See :meth:`Allocator.take_range`."""
        check_even(job, slots)
        if not 0 < slots <= min(self.total, MAX_JOB_SLOTS):
            raise JobRequestError(
                f"job {job!r}: {slots} slots: a job has 2 to {min(self.total, MAX_JOB_SLOTS)} of"
                f" this switch's {self.total}"
            )
        free = gaps(self.total, [*self._others(over), *self._blocked, *self._held_for_others(job)])
        first = self._place(free, slots)
        if first is None:
            raise NoRoomError(
                f"job {job!r}: no {slots} free slots are side by side: at most"
                f" {max(map(len, free), default=0)} are ({self.used()} of {self.total} are in use"
                f"{self._foreign()})"
            )
        taken = SlotRange(first, slots, slots)
        self._taken.append(taken)
        return taken

    def claim(self, taken: SlotRange, *, over: SlotRange | None = None) -> None:
        """See :meth:`Allocator.claim`."""
        if taken.end > self.total or not is_free(taken.first, taken.reserved, self._others(over)):
            raise NoRoomError(
                f"slots {taken.first}..{taken.end - 1} are in use already, or not of this switch's"
                f" {self.total}"
            )
        self._taken.append(taken)

    def give_back(self, taken: SlotRange) -> None:
        """See :meth:`Allocator.give_back`."""
        if taken not in self._taken:
            raise ValueError(f"slots {taken.first}.. are free already")
        self._taken.remove(taken)

    def block(self, ranges: Iterable[range]) -> None:
        """See :meth:`Allocator.block`."""
        self._blocked = [SlotRange(slots.start, len(slots), len(slots)) for slots in ranges]

    def fits(self, job: str, wanted: int, without: Iterable[SlotRange]) -> bool:
        """See :meth:`Allocator.fits`."""
        gone = list(without)
        rest = [taken for taken in self._taken if taken not in gone]
        return self._find(self.cost(job, wanted), [*rest, *self._blocked]) is not None

    def used(self) -> int:
        """See :meth:`Allocator.used`. Blocked slots count."""
        return self.total - sum(map(len, gaps(self.total, [*self._taken, *self._blocked])))

    def hold(self, block: range, job: str) -> None:
        """See :meth:`Allocator.hold`."""
        self._held = (SlotRange(block.start, len(block), len(block)), job) if block else None

    def _held_for_others(self, job: str) -> list[SlotRange]:
        return [self._held[0]] if self._held is not None and self._held[1] != job else []

    def _others(self, own: SlotRange | None) -> list[SlotRange]:
        return [taken for taken in self._taken if taken != own]

    def _find(self, reserved: int, busy: list[SlotRange]) -> int | None:
        for first in self._starts(reserved, busy):
            if first + reserved <= self.total and is_free(first, reserved, busy):
                return first
        return None

    def _place(self, free: Sequence[range], slots: int) -> int | None:
        """Where a range of any size is to begin in these gaps: in the smallest that has it."""
        fitting = [gap for gap in free if len(gap) >= slots]
        return min(fitting, key=len).start if fitting else None

    def _starts(self, reserved: int, busy: list[SlotRange]) -> Iterable[int]:
        """Where a range may begin, best first."""
        raise NotImplementedError

    def why_full(self, job: str, wanted: int) -> str:
        """See :meth:`Allocator.why_full`."""
        raise NotImplementedError

    def _foreign(self) -> str:
        return f", {len(self._blocked)} ranges are foreign" if self._blocked else ""


def check_even(job: str, wanted: int) -> None:
    """Raises :class:`JobRequestError`: two slots are a lane, and half a lane is of no use."""
    if wanted % 2:
        raise JobRequestError(f"job {job!r}: {wanted} slots: not an even number, 2 or more")
