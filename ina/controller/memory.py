"""Who gets which of the switch's slots: one interface, one class a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from ina.controller.config import JobsConfig
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

    @property
    def end(self) -> int:
        """One after the last slot that is reserved."""
        return self.first + self.reserved


class MemoryPolicy(Protocol):
    """Shares out the slots of one switch. Not thread-safe."""

    total: int
    """Slots of the switch."""

    def cost(self, job: str, wanted: int) -> int:
        """How many slots nobody else can have when ``job`` gets ``wanted`` (0: the default).

        Raises :class:`JobRequestError` when the policy never grants so many.
        """
        ...

    def take(self, job: str, wanted: int) -> SlotRange:
        """Returns the range for ``job``, which wants ``wanted`` slots (0: the policy's default).

        Raises :class:`NoRoomError` when all slots are in use, :class:`JobRequestError` when the
        policy never grants so many; both say the numbers.
        """
        ...

    def claim(self, taken: SlotRange) -> None:
        """Takes exactly this range: a job had it before the controller started.

        Raises :class:`NoRoomError` if some of it is taken, or is not on this switch.
        """
        ...

    def give_back(self, taken: SlotRange) -> None:
        """Frees a range that :meth:`take` returned or :meth:`claim` took."""
        ...

    def block(self, ranges: Iterable[range]) -> None:
        """Says which slots are not to be handed out, instead of those said before.

        They are somebody else's: entries of the switch that no job owns name them.
        """
        ...

    def fits(self, job: str, wanted: int, without: Iterable[SlotRange]) -> bool:
        """Whether :meth:`take` would find room if the ranges ``without`` were given back."""
        ...

    def why_full(self, job: str, wanted: int) -> str:
        """Why :meth:`take` finds no room, with the numbers."""
        ...

    def used(self) -> int:
        """Slots that no other job can have now."""
        ...


class _Pool:
    """What the policies share: who has what. They differ in :meth:`cost` and :meth:`_starts`."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._taken: list[SlotRange] = []
        self._blocked: list[SlotRange] = []

    def cost(self, job: str, wanted: int) -> int:
        raise NotImplementedError

    def take(self, job: str, wanted: int) -> SlotRange:
        """See :meth:`MemoryPolicy.take`."""
        reserved = self.cost(job, wanted)
        first = self._find(reserved, [*self._taken, *self._blocked])
        if first is None:
            raise NoRoomError(f"job {job!r}: no slots left: {self.why_full(job, wanted)}")
        taken = SlotRange(first, wanted or reserved, reserved)
        self._taken.append(taken)
        return taken

    def claim(self, taken: SlotRange) -> None:
        """See :meth:`MemoryPolicy.claim`."""
        if taken.end > self.total or not _is_free(taken.first, taken.reserved, self._taken):
            raise NoRoomError(
                f"slots {taken.first}..{taken.end - 1} are in use already, or not of this switch's"
                f" {self.total}"
            )
        self._taken.append(taken)

    def give_back(self, taken: SlotRange) -> None:
        """See :meth:`MemoryPolicy.give_back`."""
        if taken not in self._taken:
            raise ValueError(f"slots {taken.first}.. are free already")
        self._taken.remove(taken)

    def block(self, ranges: Iterable[range]) -> None:
        """See :meth:`MemoryPolicy.block`."""
        self._blocked = [SlotRange(slots.start, len(slots), len(slots)) for slots in ranges]

    def fits(self, job: str, wanted: int, without: Iterable[SlotRange]) -> bool:
        """See :meth:`MemoryPolicy.fits`."""
        gone = list(without)
        rest = [taken for taken in self._taken if taken not in gone]
        return self._find(self.cost(job, wanted), [*rest, *self._blocked]) is not None

    def used(self) -> int:
        """See :meth:`MemoryPolicy.used`. Blocked slots count."""
        slots: set[int] = set()
        for taken in [*self._taken, *self._blocked]:
            slots.update(range(taken.first, min(taken.end, self.total)))
        return len(slots)

    def _find(self, reserved: int, busy: list[SlotRange]) -> int | None:
        for first in self._starts(reserved, busy):
            if first + reserved <= self.total and _is_free(first, reserved, busy):
                return first
        return None

    def _starts(self, reserved: int, busy: list[SlotRange]) -> Iterable[int]:
        """Where a range may begin, best first."""
        raise NotImplementedError

    def why_full(self, job: str, wanted: int) -> str:
        """See :meth:`MemoryPolicy.why_full`."""
        raise NotImplementedError

    def _foreign(self) -> str:
        return f", {len(self._blocked)} ranges are foreign" if self._blocked else ""


class StaticPool(_Pool):
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
        """See :meth:`MemoryPolicy.cost`: always a whole range."""
        _check_even(job, wanted)
        if wanted > self.range_slots:
            raise JobRequestError(
                f"job {job!r}: {wanted} slots: this controller gives a job at most"
                f" {self.range_slots} (jobs.sizing, jobs.slots and jobs.count in its configuration)"
            )
        return self.range_slots

    def give_back(self, taken: SlotRange) -> None:
        """See :meth:`MemoryPolicy.give_back`. The range goes to the end of the queue."""
        super().give_back(taken)
        if taken.first in self._order:
            self._order.remove(taken.first)
            self._order.append(taken.first)

    def _starts(self, reserved: int, busy: list[SlotRange]) -> list[int]:
        return self._order

    def why_full(self, job: str, wanted: int) -> str:
        """See :meth:`MemoryPolicy.why_full`."""
        return (
            f"all {len(self._order)} ranges of {self.range_slots} slots are in use"
            f" (the switch has {self.total}{self._foreign()})"
        )


class FirstFit(_Pool):
    """Ranges of the size that a job asks for, each the first that is free."""

    def __init__(self, total: int, default_slots: int) -> None:
        super().__init__(total)
        self.default_slots = default_slots

    def cost(self, job: str, wanted: int) -> int:
        """See :meth:`MemoryPolicy.cost`: what it asks for."""
        _check_even(job, wanted)
        slots = wanted or self.default_slots
        if slots > min(self.total, MAX_JOB_SLOTS):
            raise JobRequestError(f"job {job!r}: {slots} slots: the switch has {self.total}")
        return slots

    def _starts(self, reserved: int, busy: list[SlotRange]) -> Iterator[int]:
        yield 0
        yield from sorted(taken.end for taken in busy)

    def why_full(self, job: str, wanted: int) -> str:
        """See :meth:`MemoryPolicy.why_full`."""
        reserved, used = self.cost(job, wanted), self.used()
        return (
            f"no {reserved} free ones are side by side ({used} of {self.total} are in use"
            f"{self._foreign()})"
        )


def memory_policy(config: JobsConfig, total: int) -> MemoryPolicy:
    """The policy that the configuration names, for a switch of ``total`` slots."""
    if config.sizing == "asked":
        return FirstFit(total, config.slots)
    if config.sizing == "equal":
        share = min(total // config.count, MAX_JOB_SLOTS)
        return StaticPool(total, share - share % 2)
    return StaticPool(total, config.slots)


def _is_free(first: int, slots: int, busy: Iterable[SlotRange]) -> bool:
    return all(first >= taken.end or first + slots <= taken.first for taken in busy)


def _check_even(job: str, wanted: int) -> None:
    if wanted % 2:
        raise JobRequestError(f"job {job!r}: {wanted} slots: not an even number, 2 or more")
