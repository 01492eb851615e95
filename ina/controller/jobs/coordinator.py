"""Joins the registry to a store and a switch: who waits for whom, and what is written when.

Each step is decided in the registry, then stored, then written to the switch, then told. So a
controller that dies anywhere finds in its store what the switch shall have (``restore``), and makes
it so (``reconcile``).

Everything runs in one event loop. The switch is written by one task at a time; those tasks are the
coordinator's own, so that a client that hangs up does not stop one halfway.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from ina.controller import faults
from ina.controller.errors import (
    JobAbortedError,
    JobConflictError,
    JobPipesError,
    JoinTimeoutError,
    StandbyError,
    StoreError,
    SwitchError,
    UnknownJobError,
)
from ina.controller.job import Endpoint, Job, JobState, ranks_text
from ina.controller.jobs.events import EventBus, job_event
from ina.controller.jobs.registry import Registry
from ina.controller.jobs.results_groups import regroup, share_if_room, take_out
from ina.controller.retry import Persistence, fail, wait_for
from ina.controller.store import Claim, StoredJob
from ina.controller.switches.items import Item
from ina.controller.switches.plan import JobPlan, plan_job, sharing_ranks
from ina.controller.switches.reconcile import (
    compare,
    epochs_of,
    job_number,
    kept_its_registers,
    slots_of,
)
from ina.controller.switches.writer import JobWriter
from ina.rpc import controller_pb2 as pb2

_log = logging.getLogger(__name__)


class Coordinator:
    """Create, join, leave and end. What happens is published on ``events``.

    When the store cannot be written, what the registry has is worth nothing any more: whoever made
    this coordinator must close it and make another from the store (:meth:`until_broken`).
    """

    def __init__(
        self,
        registry: Registry,
        writer: JobWriter,
        claim: Claim,
        *,
        events: EventBus | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.registry = registry
        self.events = events or EventBus()
        self.foreign: list[Item] = []
        """What the last look at the switch found that no job owns."""
        self._broken = asyncio.Event()
        self._store_error = StoreError("")
        self._writer = writer
        self._claim = claim
        self._clock = clock
        self._turn = asyncio.Lock()
        self._started: dict[Job, asyncio.Future[None]] = {}
        self._ended: dict[Job, asyncio.Event] = {}
        self._removed: dict[Job, asyncio.Future[None]] = {}
        self._plans: dict[Job, JobPlan] = {}
        self._given_up: dict[Job, str] = {}
        self._background = Persistence()

    async def create(
        self,
        name: str,
        world_size: int,
        slots: int,
        wait_s: float,
        *,
        tenant: str = "",
        priority: int = 0,
        token: str = "",
    ) -> Job:
        """See :meth:`Registry.create`. Waits ``wait_s`` for a leaving job of this name to end."""
        deadline_s = self._clock() + wait_s
        while True:
            now_s = self._expire()
            before = set(self.registry)
            try:
                job = self.registry.create(
                    name,
                    world_size,
                    slots,
                    now_s,
                    tenant=tenant,
                    priority=priority,
                    token=token,
                )
            except JobConflictError:
                former = self.registry.get(name)
                left_s = deadline_s - self._clock()
                if former.state is not JobState.LEAVING or left_s <= 0:
                    raise
                await wait_for(self._ended.setdefault(former, asyncio.Event()), left_s)
                continue
            if job not in before:
                self._save("create", job)
                self._tell(pb2.JOB_CREATED, job)
            return job

    async def join(
        self, name: str, rank: int, endpoint: Endpoint, timeout_s: float, *, token: str = ""
    ) -> Job:
        """Adds a worker; returns when all have joined and the switch has the job's entries.

        When one worker's time is over, the start has failed for all: each gets the same error.

        Where one sits in another pipe than the others, all get :class:`JobPipesError`.

        Raises what :meth:`Registry.join` raises, and :class:`JoinTimeoutError`,
        :class:`JobAbortedError`, :class:`SwitchError`.
        """
        self._expire()
        try:
            job = self.registry.join(name, rank, endpoint, token=token)
        except JobPipesError as error:  # all of them must hear it: none can ever run
            self._abandon(self.registry.get(name), error)
            raise
        if job.state is JobState.STARTING:
            share_if_room(job, self.registry)
            epoch = job.epoch
            self._commit("start", lambda: self._claim.save(job, last_epoch=epoch))
        else:
            self._save("join", job)
        self._tell(pb2.MEMBER_JOINED, job, ranks=[rank], reason=f"from {endpoint}")
        started = self._started.get(job)
        if started is None:
            started = self._started[job] = asyncio.get_running_loop().create_future()
        if job.state is JobState.STARTING:
            self._background.spawn(self._install(job, started))
        try:
            # Not wait_for: it would cancel the future that the others wait for.
            await asyncio.wait([started], timeout=timeout_s)
        except asyncio.CancelledError:  # the worker hung up
            self._hang_up(job, rank)
            raise
        if not started.done():
            self._time_out(job, rank, timeout_s)
        await asyncio.shield(started)
        return job

    async def leave(self, name: str, rank: int, epoch: int) -> None:
        """Removes a worker of incarnation ``epoch``. If it is gone already, nothing happens.

        Raises :class:`SwitchError` if the switch does not take the removal at once; it is tried
        again until the switch does.
        """
        job = self.registry.leave(name, rank, epoch)
        if job is None:
            return
        self._save("leave", job)
        self._tell(pb2.MEMBER_LEFT, job, ranks=[rank])
        # Decided here, not in the task: others may leave while it waits for its turn.
        done = self._remove_member(job, rank) if job.members else self._remove(job)
        await asyncio.shield(done)

    def shares_results(self, job: Job, rank: int) -> bool:
        """Whether results come to the worker by IP multicast, as its job is on the switch."""
        return job in self._plans and rank in sharing_ranks(self._plans[job].endpoints)

    def give_own_results(self, job: Job, rank: int) -> None:
        """Results by IP multicast do not reach this worker: it gets its own, soon and for good.

        Nothing happens where it has them already, or has left.
        """
        if job not in self._plans or not take_out(job, rank, self._plans[job]):
            return
        self._save("own_results", job)

        async def attempt() -> None:
            async with self._turn:
                if job.members:  # else what it has is being removed, by the plan as it is
                    self._plans[job] = await regroup(self._writer, job, self._plans[job])

        self._background.insist(f"own results for rank {rank} of job {job.name!r}", attempt)

    def lose(
        self, job: Job, ranks: Iterable[int], reason: str, kind: pb2.EventKind = pb2.MEMBER_LOST
    ) -> None:
        """Ends a job that cannot go on: its workers are told, its entries go in the background.

        ``ranks``: whom it is about. A job that has ended, or that is being removed, is left alone.
        """
        if self._is_alive(job):
            self._end(job, ranks, reason, kind)

    async def evict(self, name: str, reason: str) -> Job:
        """Ends a job, whatever its state; its slots are free when this returns.

        Raises :class:`UnknownJobError`; :class:`SwitchError` if the switch does not take the
        removal at once (it is tried again until it does).
        """
        job = self.registry.get(name)
        removed = self._removal_of(job)
        if self._is_alive(job):
            self._end(job, (), reason, pb2.JOB_EVICTED)
        if job.state is not JobState.GONE:
            await asyncio.shield(removed)
        return job

    def restore(self, stored: Iterable[StoredJob]) -> None:
        """Takes over what a former controller left in the store; call :meth:`reconcile` next.

        Jobs that run, go on. The calls of those that were about to start broke with that
        controller: they end. A job that still waited for workers waits for all of them again.
        """
        for job, endpoints in ((item.job, item.endpoints) for item in stored):
            self.registry.adopt(job)
            if job.state is JobState.JOINING:
                job.members.clear()
                self._save("restore", job)
                continue
            self._plans[job] = plan_job(replace(job, members=endpoints))
            if job.state is JobState.STARTING:
                self.registry.failed(job)
                self._save("restore", job)
            if not job.members:
                self._remove(job)

    async def reconcile(self, *, fresh: bool) -> None:
        """Makes the switch have what the store says, after a connection to it was made.

        ``fresh``: its pipeline was set just now. If it has lost its registers since the jobs
        started, these end: an epoch's sums cannot be continued. Raises :class:`SwitchError`.
        """
        async with self._turn:
            state = await self._writer.read_state()
            running = [job for job in self.registry if self._wanted(job)]
            epochs = self.registry.epochs
            if fresh or not kept_its_registers(
                state.mark, epochs.last, [job.epoch for job in running]
            ):
                for job in running:
                    self.lose(job, (), "the switch has lost its registers", pb2.SWITCH_LOST)
            epochs.resume(state.mark, fresh=fresh)
            for epoch in epochs_of(state.items):
                epochs.resume(epoch)  # whose slots a newer job may get one day
            self._commit("epoch", lambda: self._claim.save_epoch(epochs.last))
            await self._writer.put_mark(epochs.last, state.mark)
            difference = compare({job.number: self._wanted(job) for job in self.registry}, state)
            # A group may still use what is extra.
            await self._writer.modify(difference.wrong)
            await self._writer.delete(difference.extra)
            for number, items in difference.missing.items():
                await self._put_back(number, items)
            changed = sum(map(len, difference.missing.values())) + len(difference.wrong)
            differed = changed or difference.extra
            _log.log(
                logging.WARNING if differed else logging.INFO,
                "reconciled the switch: %d entries written, %d removed",
                changed,
                len(difference.extra),
            )
            self._found_foreign(difference.foreign)

    async def remove_foreign(self) -> list[Item]:
        """Removes what no job owns, on an operator's order; returns it.

        Raises :class:`SwitchError`.
        """
        async with self._turn:
            wanted = {job.number: self._wanted(job) for job in self.registry}
            foreign = compare(wanted, await self._writer.read_state()).foreign
            await self._writer.delete(foreign)
            self._found_foreign([])
        return foreign

    def jobs(self) -> list[Job]:
        """Every job, by number."""
        self._expire()
        return sorted(self.registry, key=lambda job: job.number)

    def plan(self, name: str) -> JobPlan:
        """What the controller has installed for a job; raises :class:`UnknownJobError`."""
        plan = self._plans.get(self.registry.get(name))
        if plan is None:
            raise UnknownJobError(f"job {name!r} has nothing on the switch")
        return plan

    async def until_broken(self) -> None:
        """Raises :class:`StoreError` once the store has failed to take a change."""
        await self._broken.wait()
        raise self._store_error

    async def close(self, why: str = "the controller is stopping") -> None:
        """Stops. Running jobs keep their entries: the controller is not on the data's path."""
        for started in self._started.values():
            fail(started, StandbyError(f"standby: {why}"))
        await self._background.close()
        self.events.close()

    def _is_alive(self, job: Job) -> bool:
        if job.state is JobState.STARTING:
            return job not in self._given_up
        return job.state is JobState.JOINING or bool(job.members)

    def _end(self, job: Job, ranks: Iterable[int], reason: str, kind: pb2.EventKind) -> None:
        if job.state in (JobState.RUNNING, JobState.LEAVING):
            self.registry.end(job)
            self._save("evict" if kind == pb2.JOB_EVICTED else "lost", job)
        self._tell(kind, job, ranks=ranks, reason=reason, fatal=True)
        if job.state is JobState.JOINING:
            self._abandon(job, JobAbortedError(f"job {job.name!r}: {reason}"))
        elif job.state is JobState.STARTING:  # what is being written is removed right after
            self._given_up[job] = reason
        else:
            self._remove(job)

    def _hang_up(self, job: Job, rank: int) -> None:
        if job.state is JobState.JOINING:
            ended = self.registry.withdraw(job, rank)
            self._tell(pb2.MEMBER_LEFT, job, ranks=[rank], reason="it hung up before the start")
            if ended:
                self._forget(job)
            else:
                self._save("withdraw", job)
        elif job.state is JobState.STARTING:
            self._given_up.setdefault(job, f"rank {rank} went away while the job was starting")
        else:  # it runs since a moment ago, but the worker will never know
            self._background.spawn(self.leave(job.name, rank, job.epoch))

    def _time_out(self, job: Job, rank: int, timeout_s: float) -> None:
        if job.state is JobState.STARTING:
            why = f"the switch did not take its entries in the {timeout_s:g} s of rank {rank}"
            self._given_up.setdefault(job, why)
            raise JoinTimeoutError(f"job {job.name!r}: {why}")
        missing = ranks_text(job.missing())
        self._abandon(
            job,
            JoinTimeoutError(
                f"job {job.name!r}: {missing} of {job.world_size} did not join within the"
                f" {timeout_s:g} s of rank {rank}"
            ),
        )

    def _abandon(self, job: Job, error: Exception) -> None:
        self.registry.abandon(job)
        if job in self._started:
            fail(self._started[job], error)
        self._forget(job, str(error))

    async def _install(self, job: Job, started: asyncio.Future[None]) -> None:
        error: Exception | None = None
        plan = self._plans[job] = plan_job(job)
        async with self._turn:
            try:
                await self._writer.install(plan, job.number, job.epoch)
            except SwitchError as refused:
                error = refused
            except Exception as bug:  # nobody may wait for ever for it
                _log.exception("job %r cannot start", job.name)
                error = JobAbortedError(f"job {job.name!r}: {type(bug).__name__}: {bug}")
            if error is None and job in self._given_up:
                error = JobAbortedError(f"job {job.name!r}: {self._given_up[job]}")
            if error is None:
                self.registry.installed(job)
                self._save("run", job)
            else:
                self.registry.failed(job)
                self._save("fail", job)
        if error is None:
            self._tell(pb2.JOB_RUNNING, job, reason=job.size_text())
            if not started.done():
                started.set_result(None)
            return
        _log.error("job %r cannot start: %s", job.name, error)
        fail(started, error)
        self._remove(job)

    def _remove_member(self, job: Job, rank: int) -> asyncio.Future[None]:
        async def attempt() -> None:
            async with self._turn:
                if job in self._plans:
                    await self._writer.remove_entry(self._plans[job].member(rank))

        return self._background.insist(f"removing rank {rank} of job {job.name!r}", attempt)

    def _remove(self, job: Job) -> asyncio.Future[None]:
        async def attempt() -> None:
            async with self._turn:
                await self._writer.remove(self._plans[job])
            self.registry.removed(job)
            self._forget(job)

        what = f"removing job {job.name!r}"
        return self._background.insist(what, attempt, self._removal_of(job))

    def _removal_of(self, job: Job) -> asyncio.Future[None]:
        """How the first attempt to remove the job's entries ends."""
        if job not in self._removed:
            self._removed[job] = asyncio.get_running_loop().create_future()
        return self._removed[job]

    def _expire(self) -> float:
        """Forgets jobs that were created and that nobody has joined since; returns the time."""
        now_s = self._clock()
        before = set(self.registry)
        self.registry.expire(now_s)
        for job in before.difference(self.registry):
            self._forget(job, "no worker joined it")
        return now_s

    def _wanted(self, job: Job) -> list[Item]:
        """What of the job the switch shall have now."""
        # One that starts waits for its turn to write: it has nothing there yet.
        if not job.members or job.state not in (JobState.RUNNING, JobState.LEAVING):
            return []
        *stages, _ = self._plans[job].stages
        members = [self._plans[job].member(rank) for rank in sorted(job.members)]
        return [*(item for stage in stages for item in stage), *members]

    async def _put_back(self, number: int, items: list[Item]) -> None:
        """Inserts what a job lacks; a job whose entries the switch refuses ends, alone."""
        try:
            await self._writer.insert(items)
        except SwitchError as error:
            if not error.refused:
                raise
            for job in self.registry:
                if job.number == number:
                    self.lose(job, (), f"its entries cannot be restored: {error}", pb2.SWITCH_LOST)

    def _found_foreign(self, foreign: list[Item]) -> None:
        numbers = {job_number(item) for item in foreign}
        if foreign and foreign != self.foreign:
            _log.warning(
                "the switch has %d entries that no job in the store owns (job numbers %s): left"
                " alone, and their slots are not handed out; see `ina switch show`",
                len(foreign),
                ", ".join(map(str, sorted(numbers))),
            )
        self.foreign = foreign
        self.registry.set_foreign(numbers, slots_of(foreign))

    def _save(self, step: str, job: Job) -> None:
        self._commit(step, lambda: self._claim.save(job))

    def _commit(self, step: str, change: Callable[[], None]) -> None:
        """Stores a decision. Named fault points are before and after it."""
        faults.reach(f"{step}.decided")
        try:
            change()
        except StoreError as error:  # whoever waits for it to break says so
            self._store_error = error
            self._broken.set()
            raise
        faults.reach(f"{step}.stored")

    def _forget(self, job: Job, reason: str = "") -> None:
        self._commit("removed", lambda: self._claim.remove(job))
        self._started.pop(job, None)
        self._removed.pop(job, None)
        self._plans.pop(job, None)
        self._given_up.pop(job, None)
        ended = self._ended.pop(job, None)
        if ended is not None:
            ended.set()
        self._tell(pb2.JOB_ENDED, job, reason=reason)

    def _tell(
        self,
        kind: pb2.EventKind,
        job: Job,
        *,
        ranks: Iterable[int] = (),
        reason: str = "",
        fatal: bool = False,
    ) -> None:
        self.events.publish(job_event(kind, job, ranks=ranks, reason=reason, fatal=fatal))
