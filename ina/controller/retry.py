"""Work on the switch that must be done in the end, whatever the switch says now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from ina.controller.errors import StandbyError, StoreError
from ina.tables.errors import SwitchError

_log = logging.getLogger(__name__)

FIRST_PAUSE_S, MAX_PAUSE_S = 0.1, 5.0
"""Pauses between attempts; each is twice the one before."""
_STOP_TIMEOUT_S = 15.0
"""Longer than any single call to a switch may take."""


class Persistence:
    """Tasks that outlive the calls that began them, so that a client that hangs up stops none."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[None], None] = {}  # in their order
        self._closing = asyncio.Event()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs ``work`` in a task; its error is logged, but for the store's."""
        task = asyncio.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._done)
        return task

    def insist(
        self,
        what: str,
        attempt: Callable[[], Awaitable[None]],
        first: asyncio.Future[None] | None = None,
    ) -> asyncio.Future[None]:
        """Tries ``attempt`` until it raises no :class:`SwitchError`; returns how it begins.

        ``what`` is named in the log, which hears of the first failure and of the success after it.
        ``first``: set this future, rather than a new one.
        """
        first = first or asyncio.get_running_loop().create_future()
        self.spawn(self._insist(what, attempt, first))
        return first

    async def close(self) -> None:
        """Waits for attempts under way; what still fails is given up (the store knows of it)."""
        self._closing.set()
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + _STOP_TIMEOUT_S
        while self._tasks:  # one may begin another
            left_s = max(0.0, deadline_s - loop.time())
            _, late = await asyncio.wait(self._tasks, timeout=left_s)
            for task in list(self._tasks):
                if task in late:
                    task.cancel()

    async def _insist(
        self, what: str, attempt: Callable[[], Awaitable[None]], first: asyncio.Future[None]
    ) -> None:
        try:
            await self._until_done(what, attempt, first)
        except Exception as error:
            fail(first, error)
            raise
        finally:
            fail(first, StandbyError("standby: the controller is stopping"))

    async def _until_done(
        self, what: str, attempt: Callable[[], Awaitable[None]], first: asyncio.Future[None]
    ) -> None:
        pause_s, failed = FIRST_PAUSE_S, False
        while True:
            try:
                await attempt()
            except SwitchError as error:
                if not failed:
                    _log.warning("%s: %s; trying again until it works", what, error)
                failed = True
                fail(first, error)
            else:
                if failed:
                    _log.warning("%s: done at last", what)
                if not first.done():
                    first.set_result(None)
                return
            if await wait_for(self._closing, pause_s):
                return
            pause_s = min(2 * pause_s, MAX_PAUSE_S)

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        error = None if task.cancelled() else task.exception()
        if error is not None:
            tell_bug("", error)


def tell_bug(what: str, error: BaseException) -> None:
    """Logs it, but for the store's: the supervisor says that, and the term is about to end.

    ``what``: has failed, with a trace of where; empty: the error says it.
    """
    if isinstance(error, StoreError):
        return
    if what:
        _log.error("%s", what, exc_info=error)
    else:
        _log.error("%s", error)


def fail(future: asyncio.Future[None], error: Exception) -> None:
    """Sets ``error`` if nothing is set; nobody needs to wait for it."""
    if not future.done():
        future.set_exception(error)
        future.exception()  # seen


async def wait_for(event: asyncio.Event, timeout_s: float | None) -> bool:
    """Waits until ``event`` is set; False: it is not, after ``timeout_s``; None: for ever."""
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except asyncio.TimeoutError:
        return False
    return True
