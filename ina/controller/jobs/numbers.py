"""What packets carry of a job: its number, handed out in turn so that none returns soon, and the
epoch, the number of its incarnation, which only grows on a switch. Pure.

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
from collections import deque
from collections.abc import Callable, Collection, Iterable

from ina.controller.errors import NoRoomError
from ina.controller.job import Job
from ina.protocol import serial


class JobNumbers:
    """Those that no job has. Not thread-safe."""

    def __init__(self, numbers: range, foreign: Callable[[], Collection[int]]) -> None:
        """``foreign``: those that entries of nobody's on some switch name now."""
        self._free = deque(numbers)
        self._foreign = foreign

    def any_left(self) -> bool:
        """Whether there is one for a new job."""
        return self._next(1) is not None

    def are_free(self, numbers: Iterable[int]) -> bool:
        """Whether no job has any of these."""
        return set(numbers) <= set(self._free)

    def take(self, job: str, count: int, why_not: str) -> tuple[int, ...]:
        """Raises :class:`NoRoomError`, with ``why_not``: there are not so many."""
        found = self._next(count)
        if found is None:
            raise NoRoomError(f"job {job!r}: {why_not}")
        self.claim(found)
        return found

    def take_for_change(self, job: Job, count: int) -> tuple[int, ...]:
        """Others for a mapping of a job: first its own, if its packets carry another now.

        Raises :class:`NoRoomError`.
        """
        own = () if job.number in job.mapping.numbers else (job.number,)
        why_not = "no job number is left for other trees"
        return own + self.take(job.name, count - len(own), why_not)

    def claim(self, numbers: Iterable[int]) -> None:
        """Takes exactly these, which are free."""
        for number in numbers:
            self._free.remove(number)

    def give_back(self, numbers: Iterable[int]) -> None:
        """Their jobs, or mappings, are gone."""
        self._free.extend(numbers)

    def _next(self, count: int) -> tuple[int, ...] | None:
        foreign = self._foreign()
        usable = [number for number in self._free if number not in foreign][:count]
        return tuple(usable) if len(usable) == count else None


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
