"""Which ranges of a switch's slots are free."""

from __future__ import annotations

from collections.abc import Iterable

from ina.trees.slots import SlotRange


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
