"""An asyncio event loop in virtual time: that of a network, whose packets move while all wait.

Nothing here reads a clock or starts a thread. When no callback is ready, the network runs to the
next timer, or to the first event that it has to tell. So a program that waits an hour takes as long
as what happens in that hour, and the same program does the same each time.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from types import CoroutineType
from typing import Any

from ina.extension import sim as native
from ina.sim.errors import NothingHappensError, VirtualTimeError
from ina.sim.process import current

NS_PER_S = 1_000_000_000
_NEVER_NS = (1 << 63) - 1
_LOOK_NS = NS_PER_S
"""Where no timer is set: how far the network runs before it is asked whether anything is left."""
_MAX_TURNS = 1_000_000
"""Of the loop, one after the other, in which time stands still: somebody asks without waiting."""
_MAX_NAMED = 12
_ASYNCIO = str(Path(asyncio.__file__).parent)

OnNotice = Callable[[native.WorkerEvent, int], None]
"""Told of an event of one worker, and of the tensor's id."""


class VirtualLoop(asyncio.BaseEventLoop):
    """A context manager: leaving it ends all tasks.

    Raises :class:`NothingHappensError` and :class:`VirtualTimeError` out of
    :meth:`run_until_complete`.
    """

    def __init__(self, network: native.Network, *, limit_s: float = 3600.0) -> None:
        """``limit_s``: virtual time from now on, which the run may take."""
        super().__init__()
        self.network = network
        self._limit_ns = network.now_ns + math.ceil(limit_s * NS_PER_S)
        self._watched: dict[native.Worker, OnNotice] = {}
        self._turns = 0
        self._selector = self  # what BaseEventLoop waits by

    def __enter__(self) -> VirtualLoop:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            left = sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())
            for task in left:
                task.cancel()
            self._limit_ns = max(self._limit_ns, self.now_ns + NS_PER_S)  # to end in
            if left:
                self.run_until_complete(asyncio.wait(left))
            self.run_until_complete(self.shutdown_asyncgens())
        except (NothingHappensError, VirtualTimeError):
            pass  # a task that refuses to end is left where it is
        finally:
            self.close()

    @property
    def now_ns(self) -> int:
        """Virtual time."""
        return self.network.now_ns

    def time(self) -> float:
        """Virtual time, in seconds: what asyncio's timers are set by."""
        return self.network.now_ns / NS_PER_S

    @property
    def _clock_resolution(self) -> float:
        """BaseEventLoop runs a timer early by less than this: here, not at all.

        Else who waits for the rest of a nanosecond would wait for ever, and no time would pass.
        """
        return math.ulp(self.time())

    @_clock_resolution.setter
    def _clock_resolution(self, value: float) -> None:
        """BaseEventLoop sets that of the machine's clock."""

    def watch(self, worker: native.Worker, on_notice: OnNotice | None) -> None:
        """Who is told of a worker's events; None: nobody."""
        if on_notice is None:
            self._watched.pop(worker, None)
        else:
            self._watched[worker] = on_notice

    def create_task(self, coro: Any, **options: Any) -> asyncio.Task[Any]:
        """As asyncio's. The task is of the process that creates it; the dead create none."""
        owner = current()
        if owner is not None and owner.is_dead:
            coro.close()
            owner.check()
        task = super().create_task(coro, **options)
        if owner is not None:
            owner.adopt(task)
        return task

    # -- what BaseEventLoop asks of a selector --

    def select(self, timeout_s: float | None) -> list[Any]:
        """Lets virtual time pass, at most so much; 0: none, for something is to be done now."""
        before_ns = self.now_ns
        if not self._tell() and (timeout_s is None or timeout_s > 0):
            self._pass(timeout_s)
        self._turns = 0 if self.now_ns > before_ns else self._turns + 1
        if self._turns > _MAX_TURNS:
            raise VirtualTimeError(
                f"at {self.time():.9f} s: {_MAX_TURNS} turns of the loop, and no time has passed;"
                f" there are {self._who_waits()}"
            )
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no files."""

    def _write_to_self(self) -> None:
        """There are no threads to wake it from."""

    def _pass(self, timeout_s: float | None) -> None:
        network = self.network
        if timeout_s is not None:
            end_ns = network.now_ns + max(1, math.ceil(timeout_s * NS_PER_S))
            network.run(min(end_ns, self._limit_ns))
        else:
            while network.next_ns != _NEVER_NS and network.now_ns < self._limit_ns:
                if not network.run(min(network.now_ns + _LOOK_NS, self._limit_ns)):
                    break
        told = self._tell()
        if not told and network.now_ns >= self._limit_ns:
            raise VirtualTimeError(
                f"the limit of {self._limit_ns / NS_PER_S:g} s of virtual time has passed; still"
                f" there are {self._who_waits()}"
            )
        if not told and timeout_s is None:
            raise NothingHappensError(
                f"at {self.time():.9f} s nothing will happen any more, and there are"
                f" {self._who_waits()}"
            )

    def _tell(self) -> bool:
        notices = self.network.take_notices()
        for _, worker, event, tensor in notices:
            function = self._watched.get(worker)
            if function is not None:
                function(event, tensor)
        return bool(notices)

    def _who_waits(self) -> str:
        tasks = sorted(_where(task) for task in asyncio.all_tasks(self))
        more = f" and {len(tasks) - _MAX_NAMED} more" if len(tasks) > _MAX_NAMED else ""
        return f"{len(tasks)} tasks: {'; '.join(tasks[:_MAX_NAMED])}{more}"


def _where(task: asyncio.Task[Any]) -> str:
    """Where a task waits: its innermost coroutine that is not asyncio's, and the line."""
    inner: Any = task.get_coro()
    name, line = getattr(inner, "__qualname__", "?"), 0
    while isinstance(inner, CoroutineType):
        frame = inner.cr_frame
        if frame is not None and not frame.f_code.co_filename.startswith(_ASYNCIO):
            name, line = inner.__qualname__, frame.f_lineno
        inner = inner.cr_await
    return f"{name}:{line}"
