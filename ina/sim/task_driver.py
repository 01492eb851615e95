"""Runs the rules of a rank's membership as tasks of its process, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

from ina.extension.host import TransportEngine
from ina.host.member.driver import Flag, Procedure
from ina.sim.process import Process

T = TypeVar("T")


class Unsaid:
    """Nobody is there to be told who is waited for: :class:`ina.host.member.driver.Waiting`."""

    whom = ""

    def heard(self) -> None:
        """Nothing."""

    def missed(self, why: str) -> None:
        """Nothing."""


class TaskDriver:
    """One process's. See :class:`ina.host.member.driver.Driver`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._moved = asyncio.Event()

    def moved(self) -> None:
        """Its worker has an operation more, or one less, or has ended."""
        self._moved.set()

    def now_s(self) -> float:
        """Virtual time."""
        return asyncio.get_running_loop().time()

    def flag(self) -> Flag:
        """A new one, not set."""
        return asyncio.Event()

    def start(self, name: str, procedure: Procedure) -> None:
        """In a task of its own."""
        self._tasks[name] = self._process.spawn(procedure())

    async def ended(self, name: str, timeout_s: float) -> None:
        """Until its task has; a task does not wait for itself."""
        task = self._tasks.get(name)
        if task is not None and task is not asyncio.current_task():
            await asyncio.wait([task], timeout=timeout_s)
            await self._process.running()

    async def wait(self, flag: Flag, timeout_s: float) -> bool:
        """Until the flag is set; False: the time is over."""
        assert isinstance(flag, asyncio.Event)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(flag.wait(), timeout_s)
        await self._process.running()
        return flag.is_set()

    async def until_set(self, flag: Flag) -> None:
        """However long it takes."""
        assert isinstance(flag, asyncio.Event)
        await flag.wait()
        await self._process.running()

    async def sleep(self, for_s: float) -> None:
        """Do nothing."""
        await asyncio.sleep(for_s)
        await self._process.running()

    async def until_cut(self, transport: TransportEngine, timeout_s: float) -> bool:
        """Until it has the older mapping's results; False: the time is over."""
        end_s = self.now_s() + timeout_s
        while not transport.wait_cut(0):
            self._moved.clear()
            if not await self.wait(self._moved, end_s - self.now_s()):
                return transport.wait_cut(0)
        return True

    async def outside(self, function: Callable[[], T]) -> T:
        """Call it: in virtual time nothing takes long."""
        return function()

    def patience(self, whom: str, timeout_s: float) -> contextlib.AbstractContextManager[Any]:
        """Says nothing."""
        return contextlib.nullcontext(Unsaid())
