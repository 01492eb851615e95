"""Joins the registry to a switch: who waits for whom, and what is written when.

Everything runs in one event loop. The switch is written by one task at a time; those tasks are the
coordinator's own, so that a client that hangs up does not stop one halfway.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

from ina.controller.errors import (
    JobAbortedError,
    JobConflictError,
    JoinTimeoutError,
    SwitchError,
    UnknownJobError,
)
from ina.controller.jobs import Endpoint, Job, JobState
from ina.controller.plan import JobPlan, plan_job
from ina.controller.registry import Registry
from ina.controller.switch_writer import JobWriter

_log = logging.getLogger(__name__)


class Coordinator:
    """Create, join and leave, as the northbound service offers them."""

    def __init__(
        self,
        registry: Registry,
        writer: JobWriter,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.registry = registry
        self._writer = writer
        self._clock = clock
        self._turn = asyncio.Lock()
        self._started: dict[Job, asyncio.Future[None]] = {}
        self._ended: dict[Job, asyncio.Event] = {}
        self._plans: dict[Job, JobPlan] = {}
        self._given_up: dict[Job, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def create(self, name: str, world_size: int, slots: int, wait_s: float) -> Job:
        """See :meth:`Registry.create`. Waits ``wait_s`` for a leaving job of this name to end."""
        deadline_s = self._clock() + wait_s
        while True:
            try:
                job = self.registry.create(name, world_size, slots, self._clock())
            except JobConflictError:
                former = self.registry.get(name)
                left_s = deadline_s - self._clock()
                if former.state is not JobState.LEAVING or left_s <= 0:
                    raise
                await _wait(self._ended.setdefault(former, asyncio.Event()).wait(), left_s)
                continue
            return job

    async def join(self, name: str, rank: int, endpoint: Endpoint, timeout_s: float) -> Job:
        """Adds a worker; returns when all have joined and the switch has the job's entries.

        When one worker's time is over, the start has failed for all: each gets the same error.

        Raises what :meth:`Registry.join` raises, and :class:`JoinTimeoutError`,
        :class:`JobAbortedError`, :class:`SwitchError`.
        """
        self.registry.expire(self._clock())
        job = self.registry.join(name, rank, endpoint)
        started = self._started.get(job)
        if started is None:
            started = self._started[job] = asyncio.get_running_loop().create_future()
        if job.state is JobState.STARTING:
            self._spawn(self._install(job, started))
        try:
            # Not wait_for: it would cancel the future that the others wait for.
            await asyncio.wait([started], timeout=timeout_s)
        except asyncio.CancelledError:  # the worker hung up
            self._hang_up(job, rank)
            raise
        if not started.done():
            self._time_out(job, rank, timeout_s)
        return await self._outcome(job, started)

    async def leave(self, name: str, rank: int, epoch: int) -> None:
        """Removes a worker of incarnation ``epoch``. If it is gone already, nothing happens.

        Raises :class:`SwitchError` if the switch does not take the removal.
        """
        job = self.registry.leave(name, rank, epoch)
        if job is not None:
            # Decided here, not in the task: others may leave while it waits for its turn.
            last = not job.members
            await asyncio.shield(self._spawn(self._remove(job, rank, last=last)))

    def jobs(self) -> list[Job]:
        """Every job, by number."""
        self.registry.expire(self._clock())
        return sorted(self.registry, key=lambda job: job.number)

    def plan(self, name: str) -> JobPlan:
        """What the controller has installed for a job; raises :class:`UnknownJobError`."""
        plan = self._plans.get(self.registry.get(name))
        if plan is None:
            raise UnknownJobError(f"job {name!r} has nothing on the switch")
        return plan

    async def close(self) -> None:
        """Stops. Running jobs keep their entries: the controller is not on the data's path."""
        for started in self._started.values():
            if not started.done():
                started.set_exception(JobAbortedError("the controller is stopping"))
                started.exception()  # seen, should nobody wait
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _outcome(self, job: Job, started: asyncio.Future[None]) -> Job:
        await asyncio.shield(started)
        return job

    def _hang_up(self, job: Job, rank: int) -> None:
        if job.state is JobState.JOINING:
            if self.registry.withdraw(job, rank):
                self._forget(job)
        elif job.state is JobState.STARTING:
            self._given_up.setdefault(job, f"rank {rank} went away while the job was starting")
        else:  # it runs since a moment ago, but the worker will never know
            self._spawn(self.leave(job.name, rank, job.epoch))

    def _time_out(self, job: Job, rank: int, timeout_s: float) -> None:
        if job.state is JobState.STARTING:
            why = f"the switch did not take its entries in the {timeout_s:g} s of rank {rank}"
            self._given_up.setdefault(job, why)
            raise JoinTimeoutError(f"job {job.name!r}: {why}")
        missing = job.missing()
        self.registry.abandon(job)
        started = self._started[job]
        started.set_exception(
            JoinTimeoutError(
                f"job {job.name!r}: {_ranks(missing)} of {job.world_size} did not join within the"
                f" {timeout_s:g} s of rank {rank}"
            )
        )
        self._forget(job)

    async def _install(self, job: Job, started: asyncio.Future[None]) -> None:
        error: Exception | None = None
        plan = plan_job(job)
        async with self._turn:
            try:
                await self._writer.install(plan, job.number, job.epoch)
            except SwitchError as refused:
                error = refused
            if error is None and job in self._given_up:
                error = JobAbortedError(f"job {job.name!r}: {self._given_up[job]}")
            if error is None:
                self._plans[job] = plan
                self.registry.installed(job)
                _log.info("job %r runs: number %d, epoch %d", job.name, job.number, job.epoch)
            else:
                self.registry.failed(job)
        if error is None:
            if not started.done():
                started.set_result(None)
            return
        _log.error("job %r cannot start: %s", job.name, error)
        if not started.done():
            started.set_exception(error)
            started.exception()  # seen, should nobody wait any more
        self._plans[job] = plan
        await self._end(job)

    async def _remove(self, job: Job, rank: int, *, last: bool) -> None:
        if last:
            await self._end(job)
        else:
            async with self._turn:
                await self._writer.remove_entry(self._plans[job].member(rank))

    async def _end(self, job: Job) -> None:
        async with self._turn:
            await self._writer.remove(self._plans[job])
        self.registry.removed(job)
        self._forget(job)
        _log.info("job %r has ended", job.name)

    def _forget(self, job: Job) -> None:
        self._started.pop(job, None)
        self._plans.pop(job, None)
        self._given_up.pop(job, None)
        ended = self._ended.pop(job, None)
        if ended is not None:
            ended.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("%s", task.exception())


async def _wait(event: Coroutine[Any, Any, Any], timeout_s: float) -> None:
    try:
        await asyncio.wait_for(event, timeout_s)
    except asyncio.TimeoutError:
        return


def _ranks(ranks: list[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
