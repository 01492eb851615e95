"""What is decided of jobs, put into the store; named fault points are before and after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from ina.controller import faults
from ina.controller.errors import StoreError
from ina.controller.job import Job
from ina.controller.store import Claim


class Record:
    """A store by its claim. Every method raises :class:`StoreError` if it does not take a change.

    Then what was decided since is worth nothing any more.
    """

    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._broken = asyncio.Event()
        self._error = StoreError("")

    def save(self, step: str, job: Job, *, last_epoch: int | None = None) -> None:
        """A job as it is now, and the last epoch issued if it is given."""
        self._commit(step, lambda: self._claim.save(job, last_epoch=last_epoch))

    def save_epoch(self, last: int) -> None:
        """The last epoch issued."""
        self._commit("epoch", lambda: self._claim.save_epoch(last))

    def save_down(self, names: Iterable[str]) -> None:
        """All links and switches that were said to be down."""
        self._commit("down", lambda: self._claim.save_down(names))

    def discard(self, job: Job) -> None:
        """The job has ended."""
        self._commit("removed", lambda: self._claim.remove(job))

    async def until_broken(self) -> None:
        """Raises :class:`StoreError` once the store has failed to take a change."""
        await self._broken.wait()
        raise self._error

    def _commit(self, step: str, change: Callable[[], None]) -> None:
        faults.reach(f"{step}.decided")
        try:
            change()
        except StoreError as error:  # whoever waits for it to break says so
            self._error = error
            self._broken.set()
            raise
        faults.reach(f"{step}.stored")
