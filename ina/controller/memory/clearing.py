"""Which ranges to move so that a large one finds room: free slots are many, but not side by side.
Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ina.controller.memory.ranges import best_start, gaps
from ina.trees.slots import SlotRange

MOST_MOVES = 3
"""Ranges that are moved for one."""


@dataclass(frozen=True)
class Clearing:
    """Slots that are free once some have moved."""

    block: range
    moves: tuple[str, ...]
    """Jobs, the largest first: each finds room outside of the block."""


def clearing(
    slots: int,
    total: int,
    movable: Mapping[str, SlotRange],
    fixed: Collection[SlotRange],
    own: SlotRange | None,
) -> Clearing | None:
    """The block of ``slots`` that takes the least moving; None: none is worth it, or there is none.

    ``movable``: by job; ``fixed``: of others; ``own``: of the job that wants them, which may be in
    the block. What moves is at most half of the block.
    """
    found: list[tuple[int, Clearing]] = []
    for first in range(0, total - slots + 1, slots):
        block = range(first, first + slots)
        if any(_meets(block, taken) for taken in fixed):
            continue
        inside = {name: taken for name, taken in movable.items() if _meets(block, taken)}
        moved = sum(taken.reserved for taken in inside.values())
        if not inside or len(inside) > MOST_MOVES or 2 * moved > slots:
            continue
        names = sorted(inside, key=lambda name: -inside[name].reserved)
        if _fit_elsewhere([inside[name] for name in names], block, total, movable, fixed, own):
            found.append((moved, Clearing(block, tuple(names))))
    return min(found, key=lambda it: it[0])[1] if found else None


def _fit_elsewhere(
    moving: list[SlotRange],
    block: range,
    total: int,
    movable: Mapping[str, SlotRange],
    fixed: Collection[SlotRange],
    own: SlotRange | None,
) -> bool:
    """With the former ranges still in use: all move at once."""
    busy = [*movable.values(), *fixed, SlotRange(block.start, len(block), len(block))]
    busy += [own] if own is not None else []
    for taken in moving:
        first = best_start(gaps(total, busy), taken.slots)
        if first is None:
            return False
        busy.append(SlotRange(first, taken.slots, taken.slots))
    return True


def _meets(block: range, taken: SlotRange) -> bool:
    return taken.first < block.stop and block.start < taken.end
