"""Job numbers, as packets carry them: handed out in turn, so that none returns soon. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable

from ina.controller.errors import NoRoomError
from ina.controller.job import Job


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
