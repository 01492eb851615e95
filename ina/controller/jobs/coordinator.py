"""Joins the registry to a store and switches: who waits for whom, and what is written when.

Each step is decided in the registry, then stored, then written to the job's switches, then told.
So a controller that dies anywhere finds in its store what each switch shall have (``restore``),
and makes it so (``reconcile``).

Everything runs in one event loop. A switch is written by one task at a time; those tasks are the
coordinator's own, so that a client that hangs up does not stop one halfway.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

from ina.controller.errors import (
    JobAbortedError,
    JobConflictError,
    JobTokenError,
    JoinTimeoutError,
    NoRoomError,
    StandbyError,
    UnknownJobError,
)
from ina.controller.job import Job, JobSpec, JobState
from ina.controller.jobs import spread
from ina.controller.jobs.adoption import adoptable
from ina.controller.jobs.changes import Changes
from ina.controller.jobs.events import EventBus, job_event, log_shapes
from ina.controller.jobs.record import Record
from ina.controller.jobs.registry import Registry
from ina.controller.jobs.removal import LOOK_S, Removals
from ina.controller.jobs.results_groups import regroup, share_if_room, take_out
from ina.controller.jobs.room import with_room
from ina.controller.retry import Persistence, fail
from ina.controller.store import StoredJob
from ina.controller.switches.plan import sharing_ranks
from ina.controller.switches.reconcile import epochs_of, kept_its_registers
from ina.controller.switches.switch import Switch
from ina.rpc import controller_pb2 as pb2
from ina.rpc.ranks import ranks_text
from ina.tables.errors import SwitchError
from ina.tables.values import Item
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError

_log = logging.getLogger(__name__)


class Coordinator:
    """Create, join, leave and end. What happens is published on ``events``.

    When the store cannot be written, what the registry has is worth nothing any more: whoever made
    this coordinator must close it and make another from the store (:meth:`until_broken`).
    """

    def __init__(
        self,
        registry: Registry,
        switches: Iterable[Switch],
        record: Record,
        *,
        events: EventBus | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.registry = registry
        self.events = events or EventBus()
        self.switches = {switch.name: switch for switch in switches}
        """By name; the registry has their capacities."""
        self.record = record
        """Of the store; whatever it does not take breaks all of this."""
        self._clock = clock
        self._started: dict[Job, asyncio.Future[None]] = {}
        self._given_up: dict[Job, str] = {}
        self._placing: set[Job] = set()
        self._background = Persistence()
        shared = (registry, self.switches, self.record, self._background)
        self._removals = Removals(*shared, self._forget)
        self.changes = Changes(*shared, self._tell, clock=clock)
        """Of running jobs' mappings: their slots, and their trees."""

    async def create(self, asked: JobSpec, wait_s: float) -> Job:
        """See :meth:`Registry.create`. Waits ``wait_s`` for a leaving job of this name to end, and
        does not wait for switches that are away where there are others.
        """
        deadline_s = self._clock() + wait_s
        while True:
            now_s = self._expire()
            before = set(self.registry)
            try:
                job = self.registry.create(asked, now_s)
            except (JobConflictError, JobTokenError):
                former = self.registry.get(asked.name)
                left_s = deadline_s - self._clock()
                if self._removals.free_name(former, self.events):
                    continue
                if former.state is not JobState.LEAVING or left_s <= 0:
                    raise
                await self._removals.wait(former, min(left_s, LOOK_S))
                continue
            if job not in before:
                self.record.save("create", job)
                self._tell(pb2.JOB_CREATED, job)
            return job

    async def join(
        self, name: str, rank: int, endpoint: Endpoint, timeout_s: float, *, token: str = ""
    ) -> Job:
        """Adds a worker; returns when all have joined and the switch has the job's entries.

        When one worker's time is over, the start has failed for all: each gets the same error.

        So all get what :meth:`Registry.place` raises. Raises also what :meth:`Registry.join`
        raises, and :class:`JoinTimeoutError`, :class:`JobAbortedError`, :class:`SwitchError`.
        """
        self._expire()
        job = self.registry.join(name, rank, endpoint, token=token)
        self.record.save("join", job)
        self._tell(pb2.MEMBER_JOINED, job, ranks=[rank], reason=f"from {endpoint}")
        started = self._started.get(job)
        if started is None:
            started = self._started[job] = asyncio.get_running_loop().create_future()
        if not job.missing() and job not in self._placing:
            self._placing.add(job)
            self._background.spawn(self._place(job, started))
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
        self.record.save("leave", job)
        self._tell(pb2.MEMBER_LEFT, job, ranks=[rank])
        if job.members:
            self.changes.left(job, rank)
        # Decided here, not in the task: others may leave while it waits for its turn.
        removals = self._removals
        done = removals.member(job, rank) if job.members else removals.begin(job)
        await asyncio.shield(done)

    def shares_results(self, job: Job, rank: int) -> bool:
        """Whether results come to the worker by IP multicast, as its job is on the switch."""
        switch = self._first_switch(job, rank)
        if switch is None or job not in switch:
            return False
        return rank in sharing_ranks(switch.plan(job).endpoints)

    def give_own_results(self, job: Job, rank: int) -> None:
        """Results by IP multicast do not reach this worker: it gets its own, soon and for good.

        Nothing happens where it has them already, or has left.
        """
        switch = self._first_switch(job, rank)
        if switch is None or job not in switch or not take_out(job, rank, switch.plan(job)):
            return
        self.record.save("own_results", job)
        switches = [it for it in self._switches(job) if it.reaches(job, rank)]

        async def attempt() -> None:
            for switch in switches:
                async with switch.turn:
                    if job.members:  # else what it has is being removed, by the plan as it is
                        await regroup(switch, job)

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
        removed = self._removals.first(job)
        if self._is_alive(job):
            self._end(job, (), reason, pb2.JOB_EVICTED)
        if job.state is not JobState.GONE:
            await asyncio.shield(removed)
        return job

    async def push_out(self, victim: Job, name: str) -> None:
        """Ends a job for the sake of the job ``name``; raises :class:`SwitchError`."""
        reason = f"evicted: job {name!r} is more important and needs its slots"
        try:
            await self.evict(victim.name, reason)
        except UnknownJobError:
            return  # it ended by itself meanwhile

    def restore(self, stored: Iterable[StoredJob]) -> None:
        """Takes over what a former controller left in the store; call :meth:`reconcile` next.

        Jobs that run, go on. The calls of those that were about to start broke with that
        controller: they end. A job that still waited for workers waits for all of them again.
        """
        is_early = self.registry.placement.is_known_early
        for found in adoptable(stored, self.switches, is_early=is_early):
            job = found.job
            if found.is_gone:
                _log.error("job %r: forgotten, for %s", job.name, found.lost)
                self.record.discard(job)
                continue
            self.registry.adopt(job)
            if found.lost:
                if job.state is JobState.STARTING:
                    self.registry.failed(job)
                self._end(job, (), found.lost, pb2.SWITCH_LOST)
            elif job.state is JobState.JOINING:
                job.members.clear()
                self.record.save("restore", job)
            else:
                self._restore(job, found.endpoints)

    def _restore(self, job: Job, endpoints: dict[int, Endpoint]) -> None:
        """It had begun."""
        for switch in self._switches(job):
            switch.adopt(job, endpoints)
        if job.state is JobState.STARTING:
            self.registry.failed(job)
            self.record.save("restore", job)
        if not job.members:
            self._removals.begin(job)
        else:
            self.changes.restore(job)

    async def reconcile(self, switch: Switch, *, fresh: bool) -> None:
        """Makes a switch have what the store says, after a connection to it was made.

        ``fresh``: its pipeline was set just now. If it has lost its registers since its jobs
        started, these end: an epoch's sums cannot be continued. Raises :class:`SwitchError`.
        """
        async with switch.turn:
            state = await switch.writer.read_state()
            running = [job for job in self._jobs_on(switch) if switch.wanted(job)]
            epochs = self.registry.epochs
            let_in = epochs_of(item for job in running for item in switch.wanted(job))
            if fresh or not kept_its_registers(state.mark, epochs.last, let_in):
                for job in running:
                    if job.shares_slots_of(switch.name):
                        continue  # sums lack there nothing that resends do not bring
                    why = f"{job.switch_text(switch.name)} has lost its registers"
                    if self.changes.survives(job, switch.name):
                        self.changes.call_off(job, why)
                    else:
                        self.lose(job, (), why, pb2.SWITCH_LOST)
            epochs.resume(state.mark, fresh=fresh)
            for epoch in epochs_of(state.items):
                epochs.resume(epoch)  # whose slots a newer job may get one day
            self.record.save_epoch(epochs.last)
            await switch.writer.put_mark(epochs.last, state.mark)
            refused = await switch.make_agree(self._jobs_on(switch), state)
            for job, error in refused.items():
                lost = f"its entries at {job.switch_text(switch.name)} cannot be restored: {error}"
                self.lose(job, (), lost, pb2.SWITCH_LOST)

    async def remove_foreign(self, switch: Switch) -> list[Item]:
        """Removes what no job owns, on an operator's order; returns it.

        Raises :class:`SwitchError`.
        """
        async with switch.turn:
            return await switch.remove_foreign(self._jobs_on(switch))

    def jobs(self) -> list[Job]:
        """Every job, by number."""
        self._expire()
        return sorted(self.registry, key=lambda job: job.number)

    async def until_broken(self) -> None:
        """Raises :class:`StoreError` once the store has failed to take a change."""
        await self.record.until_broken()

    async def close(self, why: str = "the controller is stopping") -> None:
        """Stops. Running jobs keep their entries: the controller is not on the data's path."""
        for started in self._started.values():
            fail(started, StandbyError(f"standby: {why}"))
        await self._background.close()
        self._removals.close(f"standby: {why}")
        self.events.close()

    def _is_alive(self, job: Job) -> bool:
        if job.state is JobState.STARTING:
            return job not in self._given_up
        return job.state is JobState.JOINING or bool(job.members)

    def _end(self, job: Job, ranks: Iterable[int], reason: str, kind: pb2.EventKind) -> None:
        if job.state in (JobState.RUNNING, JobState.LEAVING):
            self.registry.end(job)
            self.record.save("evict" if kind == pb2.JOB_EVICTED else "lost", job)
        self._tell(kind, job, ranks=ranks, reason=reason, fatal=True)
        if job.state is JobState.JOINING:
            self._abandon(job, JobAbortedError(f"job {job.name!r}: {reason}"))
        elif job.state is JobState.STARTING:  # what is being written is removed right after
            self._given_up[job] = reason
        else:
            self._removals.begin(job)

    def _hang_up(self, job: Job, rank: int) -> None:
        if job.state is JobState.JOINING:
            ended = self.registry.withdraw(job, rank)
            self._tell(pb2.MEMBER_LEFT, job, ranks=[rank], reason="it hung up before the start")
            if ended:
                self._forget(job)
            else:
                self.record.save("withdraw", job)
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

    async def _place(self, job: Job, started: asyncio.Future[None]) -> None:
        """All have joined, so it is known where they are."""

        async def take() -> bool:
            # Who waits may go away, and come again, while others are pushed out.
            is_whole = job.state is JobState.JOINING and not job.missing()
            if is_whole:
                self.registry.place(job)
            return is_whole

        def victims() -> list[Job]:
            return self.registry.victims_of(job)

        room = self.registry.room
        try:
            if await with_room(room, job.spec, take, victims, self.push_out, job=job):
                self._save_start(job)
                self._background.spawn(self._install(job, started))
        except (JobRequestError, NoRoomError, SwitchError) as error:
            if job.state is JobState.JOINING:
                self._abandon(job, error)
        finally:
            self._placing.discard(job)

    def _save_start(self, job: Job) -> None:
        for switch in self._switches(job):
            share_if_room(job, switch, self._jobs_on(switch))
        self.record.save("start", job, last_epoch=job.epoch)

    async def _install(self, job: Job, started: asyncio.Future[None]) -> None:
        error: Exception | None = None
        switches = self._switches(job)
        for switch in switches:
            switch.expect(job)
        try:
            await spread.install(job, switches)
        except SwitchError as refused:
            error = refused
        except Exception as bug:  # nobody may wait for ever for it
            _log.exception("job %r cannot start", job.name)
            error = JobAbortedError(f"job {job.name!r}: {type(bug).__name__}: {bug}")
        if error is None and job in self._given_up:
            error = JobAbortedError(f"job {job.name!r}: {self._given_up[job]}")
        if error is None:
            self.registry.installed(job)
            self.record.save("run", job)
            self._tell(pb2.JOB_RUNNING, job, reason=job.size_text())
            log_shapes(job)
            if not started.done():
                started.set_result(None)
            return
        self.registry.failed(job)
        self.record.save("fail", job)
        _log.error("job %r cannot start: %s", job.name, error)
        fail(started, error)
        self._removals.begin(job)

    def _expire(self) -> float:
        """Forgets jobs that were created and that nobody has joined since; returns the time."""
        now_s = self._clock()
        self.changes.expire()
        before = list(self.registry)
        self.registry.expire(now_s)
        for job in before:
            if job.state is not JobState.GONE:
                continue
            self._forget(job, "no worker joined it")
        return now_s

    def _switches(self, job: Job) -> list[Switch]:
        """Those that have something of it, or shall."""
        return [self.switches[name] for name in job.switches]

    def _first_switch(self, job: Job, rank: int) -> Switch | None:
        """Where a worker sends, in its first tree; None: to a node on its host."""
        return self.switches.get(job.mapping.forest.trees[0].first_node(rank).switch)

    def _jobs_on(self, switch: Switch) -> list[Job]:
        return [job for job in self.registry if switch.name in job.switches]

    def _forget(self, job: Job, reason: str = "") -> None:
        self.record.discard(job)
        self._started.pop(job, None)
        for switch in self.switches.values():
            switch.forget(job)
        self._given_up.pop(job, None)
        self._removals.forget(job)
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
