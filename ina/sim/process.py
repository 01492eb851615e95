"""A program of the virtual network: tasks that die together, as those of a process do.

Whose a task is goes down to the tasks and callbacks that it starts (a context variable). A process
that is killed does nothing more: its tasks are cancelled, and what they do while they unwind has no
effect, since all ways out (:meth:`Process.check`) raise :class:`Killed` from then on.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")
_owner: contextvars.ContextVar[Process | None] = contextvars.ContextVar("owner", default=None)


class Killed(BaseException):
    """The process is dead. Nothing catches it: not an ``Exception``."""


class Process:
    """Alive until :meth:`kill`."""

    def __init__(self, name: str) -> None:
        self.name = name
        """For people and for the trace."""
        self.is_dead = False
        self._goes_on: asyncio.Event | None = None  # set when a stop ends
        self._tasks: dict[asyncio.Task[Any], None] = {}  # in the order in which they began
        self._on_death: list[Callable[[], None]] = []

    def spawn(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Runs ``work`` in a task of this process."""
        context = contextvars.copy_context()
        context.run(_owner.set, self)
        return context.run(asyncio.get_running_loop().create_task, work)

    @property
    def is_stopped(self) -> bool:
        """As by SIGSTOP: it answers nothing. Its tasks stop at :meth:`running`."""
        return self._goes_on is not None and not self._goes_on.is_set()

    def stop(self) -> None:
        """Until :meth:`go_on`."""
        if not self.is_stopped:
            self._goes_on = asyncio.Event()

    def go_on(self) -> None:
        """As SIGCONT."""
        if self._goes_on is not None:
            self._goes_on.set()

    async def running(self) -> None:
        """Returns when it is not stopped."""
        if self._goes_on is not None:
            await self._goes_on.wait()

    def check(self) -> None:
        """To be called at each way out of the process. Raises :class:`Killed`."""
        if self.is_dead:
            raise Killed(f"{self.name} is dead")

    def at_death(self, function: Callable[[], None]) -> None:
        """Calls ``function`` once, when the process dies."""
        self._on_death.append(function)

    def kill(self) -> None:
        """Ends it, as ``kill -9`` would. Idempotent.

        A task of its own that does so must raise :class:`Killed` next.
        """
        if self.is_dead:
            return
        self.is_dead = True
        for function in self._on_death:
            function()
        for task in list(self._tasks):
            task.cancel()

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """The task is one of this process."""
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        del self._tasks[task]
        if self.is_dead and not task.cancelled():
            task.exception()  # of the dead nobody asks


def current() -> Process | None:
    """Whose task or callback runs now."""
    return _owner.get()
