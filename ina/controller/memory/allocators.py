"""Who has which of a switch's slots: ranges, as the configuration wants them given, and arcs of
those that jobs share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from ina.controller.config import JobsConfig
from ina.controller.errors import NoRoomError
from ina.trees.errors import JobRequestError
from ina.trees.slots import MAX_JOB_SLOTS, MIN_JOB_SLOTS, SlotRange


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


def best_start(free: Iterable[range], slots: int) -> int | None:
    """Where in these gaps a range of ``slots`` is to begin; None: it fits in none.

    At a multiple of its size, as buddies do, in the smallest such block that is free, so that
    larger ones stay whole; else at the start of the smallest gap.
    """
    fitting = [gap for gap in free if len(gap) >= slots]
    aligned = [
        (_block(gap, first, slots), first)
        for gap in fitting
        for first in {-(-gap.start // slots) * slots, (gap.stop // slots - 1) * slots}
        if gap.start <= first and first + slots <= gap.stop
    ]
    if aligned:
        return min(aligned)[1]
    return min(fitting, key=len).start if fitting else None


def _block(gap: range, first: int, slots: int) -> int:
    """The size of the largest free block that the range is a part of by halving."""
    size = slots
    while gap.start <= first - first % (2 * size) and (
        first - first % (2 * size) + 2 * size <= gap.stop
    ):
        size *= 2
    return size


def is_free(first: int, slots: int, busy: Iterable[SlotRange]) -> bool:
    """Whether none of these slots are in a range of ``busy``."""
    return all(first >= taken.end or first + slots <= taken.first for taken in busy)


class Allocator(Protocol):
    """Shares out the slots of one switch. Not thread-safe."""

    total: int
    """Slots of the switch."""

    def cost(self, job: str, wanted: int) -> int:
        """How many slots nobody else can have when ``job`` gets ``wanted`` (0: the default).

        Raises :class:`JobRequestError` when the allocator never grants so many.
        """
        ...

    def take(self, job: str, wanted: int) -> SlotRange:
        """Returns the range for ``job``, which wants ``wanted`` slots (0: the usual number).

        Raises :class:`NoRoomError` when all slots are in use, :class:`JobRequestError` when the
        allocator never grants so many; both say the numbers.
        """
        ...

    def take_range(self, job: str, slots: int, *, over: SlotRange | None = None) -> SlotRange:
        """Takes ``slots`` slots for ``job`` anywhere beside what is taken, its own included.

        Unlike :meth:`take`, whatever the allocator's usual sizes are: a running job that changes
        its size has two ranges for a while, and is to have exactly so many. ``over``: one of its
        own that may share slots with the new one.

        Raises :class:`NoRoomError` where no gap is large enough, :class:`JobRequestError` where
        none can ever be; both say the numbers.
        """
        ...

    def hold(self, block: range, job: str) -> None:
        """Only ``job`` may :meth:`take_range` of these slots, until another block is held.

        An empty block: none is.
        """
        ...

    def claim(self, taken: SlotRange, *, over: SlotRange | None = None) -> None:
        """Takes exactly this range: a job had it before the controller started.

        ``over``: as in :meth:`take_range`.

        Raises :class:`NoRoomError` if some of it is taken, or is not on this switch.
        """
        ...

    def give_back(self, taken: SlotRange) -> None:
        """Frees a range that :meth:`take`, :meth:`take_range` or :meth:`claim` took."""
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


class Buddies(FirstFit):
    """As :class:`FirstFit`, but each range where it leaves larger free blocks whole.

    For policies whose sizes are powers of two, and change while jobs run.
    """

    def _find(self, reserved: int, busy: list[SlotRange]) -> int | None:
        return best_start(gaps(self.total, busy), reserved)

    def _place(self, free: Sequence[range], slots: int) -> int | None:
        return best_start(free, slots)


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


def allocator_for(config: JobsConfig, total: int) -> Allocator:
    """The allocator that the configuration names, for a switch of ``total`` slots."""
    if config.resizes:
        return Buddies(total, config.slots)
    if config.gives_what_is_asked:
        return FirstFit(total, config.slots)
    if config.sizing == "equal":
        share = min(total // config.count, MAX_JOB_SLOTS)
        return StaticPool(total, share - share % 2)
    return StaticPool(total, config.slots)


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
