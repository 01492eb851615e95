"""Ranges of any size, placed so that large ones find room again."""

from __future__ import annotations

from collections.abc import Sequence

from ina.controller.memory.first_fit import FirstFit
from ina.controller.memory.ranges import best_start, gaps
from ina.trees.slots import SlotRange


class Buddies(FirstFit):
    """As :class:`FirstFit`, but each range where it leaves larger free blocks whole.

    For policies whose sizes are powers of two, and change while jobs run.
    """

    def _find(self, reserved: int, busy: list[SlotRange]) -> int | None:
        return best_start(gaps(self.total, busy), reserved)

    def _place(self, free: Sequence[range], slots: int) -> int | None:
        return best_start(free, slots)
