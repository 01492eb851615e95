"""Epochs: the number of a job's incarnation, which only grows on a switch.

A slot belongs to the newest epoch that touched it, and nobody can read a slot's registers over
P4Runtime. So the last epoch issued is kept in the store and on the switch itself, in an entry of
the job table that no packet can use (``plan.epoch_mark``): that outlives every controller, and it
vanishes exactly when the registers do, when a new pipeline is set or the switch restarts.

If somebody removed that entry but left the pipeline, the count starts from the wall clock instead,
in seconds since 2025: newer than what was issued before as long as fewer than one epoch a second
was issued since 2025 and the clock is right, and newer than a register's initial 0 until 2093.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ina.protocol import serial

CLOCK_START_UNIX_S = 1_735_689_600
"""2025-01-01T00:00:00Z."""


class EpochCounter:
    """Issues epochs, each newer (by serial-number arithmetic) than the last, and never 0."""

    def __init__(self, last: int, unix_clock: Callable[[], float] = time.time) -> None:
        self.last = last
        self._unix_clock = unix_clock

    def resume(
        self, mark: int | None, *, fresh: bool = False, now_unix_s: float | None = None
    ) -> None:
        """Goes on after ``mark``, the last epoch issued on this switch, or None if it has none.

        What this counter has issued itself is never issued again. ``fresh``: the pipeline was set
        just now, so that all registers are 0.
        """
        if mark is None and not fresh:
            now = self._unix_clock() if now_unix_s is None else now_unix_s
            mark = int(now - CLOCK_START_UNIX_S) & 0xFFFF_FFFF
        if mark is not None and serial.is_newer(mark, self.last):
            self.last = mark

    def next(self) -> int:
        """Returns the next epoch."""
        self.last = serial.add(self.last, 1) or 1
        return self.last
