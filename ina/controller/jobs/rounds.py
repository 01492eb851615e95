"""Looks again at what is to be done: soon after something has happened, and every so often."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from ina.controller.errors import SlowWatcherError, StoreError
from ina.controller.jobs.events import EventBus
from ina.controller.retry import wait_for
from ina.rpc import controller_pb2 as pb2

_log = logging.getLogger(__name__)

GATHER_S = 0.1
"""Jobs come together, ranks leave together, links of one switch fail together: one decision for
all."""


class Rounds:
    """Tasks in the event loop: one hears of events, one does the work."""

    def __init__(
        self,
        what: str,
        events: EventBus,
        hear: Callable[[pb2.JobEvent | None], bool],
        work: Callable[[], Awaitable[None]] | None,
        period_s: float,
    ) -> None:
        """``what``: does the work, for the log. ``hear``: returns whether to look again after an
        event, and is told None where more happened than there is room for, so that some were
        missed. ``work``: None: there is none, but events are heard. ``period_s``: between looks
        when nothing happens."""
        self._what = what
        self._events = events
        self._hear = hear
        self._work = work
        self._period_s = period_s
        self._kicked = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False

    def start(self) -> None:
        """From now on."""
        self._tasks = [asyncio.create_task(self._listen())]
        if self._work is not None:
            self._tasks.append(asyncio.create_task(self._run(self._work)))

    async def close(self) -> None:
        """No more rounds; what they have begun goes on."""
        self._closing = True
        self.kick()
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def kick(self) -> None:
        """Something has changed: look again soon."""
        self._kicked.set()

    async def _listen(self) -> None:
        """Until the bus closes."""
        behind = True
        while behind:
            behind = False
            with self._events.subscribe() as events:
                try:
                    async for event in events:
                        if self._hear(event):
                            self.kick()
                except SlowWatcherError as error:
                    _log.debug("%s: %s", self._what, error)
                    behind = True
                    if self._hear(None):
                        self.kick()

    async def _run(self, work: Callable[[], Awaitable[None]]) -> None:
        while not self._closing:  # a wait that ends as it is cancelled goes on
            await wait_for(self._kicked, self._period_s)
            await asyncio.sleep(GATHER_S)
            self._kicked.clear()
            try:
                await work()
            except StoreError:  # the supervisor says it; this term is about to end
                pass
            except Exception:  # a bug; that it is never looked at again would be worse
                _log.exception("%s failed", self._what)
