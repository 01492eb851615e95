"""Looks again at what is to be done: soon after something has happened, and every so often."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from ina.controller.errors import SlowWatcherError
from ina.controller.jobs.events import EventBus
from ina.controller.retry import tell_bug, wait_for
from ina.rpc import controller_pb2 as pb2

_log = logging.getLogger(__name__)

GATHER_S = 0.1
"""Jobs come together, ranks leave together, links of one switch fail together: one decision for
all."""


class Rounds:
    """Tasks in the event loop: one does the work, and one hears of events, if any count."""

    def __init__(
        self,
        what: str,
        work: Callable[[], Awaitable[None] | None] | None,
        period_s: float | None,
        *,
        gather_s: float = GATHER_S,
        events: EventBus | None = None,
        hear: Callable[[pb2.JobEvent | None], bool] = lambda _: True,
        kicked: asyncio.Event | None = None,
    ) -> None:
        """``what``: does the work, for the log. ``work``: None: there is none, but events are
        heard. ``period_s``: between looks when nothing happens; None: there are none then.
        ``gather_s``: from a kick to the look. ``hear``: returns whether to look
        again after an event, and is told None where more happened than there is room for, so that
        some were missed. ``kicked``: set when something has changed; else by :meth:`kick`."""
        self._what = what
        self._work = work
        self._period_s = period_s
        self._gather_s = gather_s
        self._events = events
        self._hear = hear
        self._kicked = kicked or asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = False

    def start(self, *, at_once: bool = False) -> None:
        """From now on. ``at_once``: with a look."""
        if at_once:
            self.kick()
        if self._events is not None:
            self._tasks.append(asyncio.create_task(self._listen(self._events)))
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

    async def _listen(self, bus: EventBus) -> None:
        """Until the bus closes."""
        behind = True
        while behind:
            behind = False
            with bus.subscribe() as events:
                try:
                    async for event in events:
                        if self._hear(event):
                            self.kick()
                except SlowWatcherError as error:
                    _log.debug("%s: %s", self._what, error)
                    behind = True
                    if self._hear(None):
                        self.kick()

    async def _run(self, work: Callable[[], Awaitable[None] | None]) -> None:
        while not self._closing:  # a wait that ends as it is cancelled goes on
            await wait_for(self._kicked, self._period_s)
            if self._gather_s:
                await asyncio.sleep(self._gather_s)
            self._kicked.clear()
            try:
                begun = work()
                if begun is not None:
                    await begun
            except Exception as error:  # that it is never looked at again would be worse
                tell_bug(f"{self._what} failed", error)
