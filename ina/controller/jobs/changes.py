"""Changes of running jobs' mappings: what is stored, written and told, step by step.

As everywhere, a step is decided, then stored, then written to switches, then told; so a controller
that is killed at any of them leaves what its successor goes on from. Until rank 0's word is in the
store a change can be called off, for nobody else has heard it; from then on it goes through, for
ranks may have begun.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ina.controller.change import Change, Stage, Step, Terms, Word
from ina.controller.errors import JobConflictError, StandbyError
from ina.controller.job import Job, JobState
from ina.controller.jobs import remapping, spread
from ina.controller.jobs.events import log_shapes
from ina.controller.jobs.record import Record
from ina.controller.jobs.registry import Registry
from ina.controller.retry import Persistence, fail
from ina.controller.switches.switch import Switch
from ina.rpc import controller_pb2 as pb2
from ina.rpc.ranks import ranks_text
from ina.tables.errors import SwitchError
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest
from ina.trees.mapping import Mapping as JobMapping

DECIDE_S = 15.0
"""In so long all ranks are to have asked, and rank 0 to have said from which operation on."""


@dataclass(frozen=True)
class Told:
    """What a rank is to know."""

    mapping: JobMapping
    terms: Terms


class Tell(Protocol):
    """Publishes an event of a job."""

    def __call__(
        self, kind: pb2.EventKind, job: Job, *, ranks: Iterable[int] = (), reason: str = ""
    ) -> None:
        """Never waits."""


class Changes:
    """Of all jobs of a coordinator."""

    def __init__(
        self,
        registry: Registry,
        switches: Mapping[str, Switch],
        record: Record,
        background: Persistence,
        tell: Tell,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = registry
        self._switches = switches
        self._record = record
        self._background = background
        self._tell = tell
        self._clock = clock

    async def resize(self, name: str, slots: int, why: str, *, mode: str = "") -> Job:
        """Begins to give a running job another number of slots; see :meth:`change`.

        ``mode``: or another one; then ``slots`` may be 0, as many as it has. Raises also
        :class:`UnknownJobError`, and :class:`JobConflictError` if it has both already.
        """
        job = self._registry.get(name)
        if slots < 1 and not mode:
            raise JobRequestError(f"job {name!r}: {slots} slots: not an even number, 2 or more")
        is_as_asked = slots in (0, job.slots) and mode in ("", job.mode)
        if is_as_asked and job.state is JobState.RUNNING and job.change is None:
            has = f"mode {mode!r}" if mode else f"{slots} slots"
            raise JobConflictError(f"job {name!r} has {has} already")
        await self.change(job, slots=slots, mode=mode, why=why)
        return job

    async def change(
        self, job: Job, *, slots: int = 0, forest: Forest | None = None, mode: str = "", why: str
    ) -> None:
        """Begins a change: returns when its switches have both mappings, and ranks are asked.

        What becomes of it is told: JOB_REMAPPED or JOB_REMAP_OFF. ``slots``: of its own, in all
        trees of its ``forest`` together, in this ``mode``; 0, None and empty: as now, so that of
        all of them it moves. The forest is as :meth:`Placement.forest` gives it for the job's
        :attr:`Job.senders`: nodes on hosts are put below, and aggregators above.

        Raises what :func:`remapping.begin` raises; :class:`SwitchError`: one does not take it.
        """
        change = remapping.begin(self._registry, job, slots, forest, why, mode=mode)
        change.since_s, change.since_unix_s = self._clock(), self._registry.unix_s()
        self._record.save("remap", job, last_epoch=self._registry.epochs.last)
        for switch in self._others(change):
            switch.expect_other(job)
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # In a task: whoever asks may hang up, and the change goes on.
        self._background.spawn(self._install(job, change, begun))
        await asyncio.shield(begun)

    def hear(self, job: Job, rank: int, word: Word) -> Told | None:
        """A rank asks, or says how far it is; returns what it is to know, if there is anything.

        Raises :class:`JobRequestError`: it says what it cannot know, or has not to say.
        """
        change = job.change
        if word.first_operation and rank != 0:
            raise JobRequestError(f"job {job.name!r} rank {rank}: rank 0 alone says when to change")
        if change is not None and change.is_told:
            if change.ask(rank, job.members):
                told = "rank 0 is asked from which operation on"
                self._tell(pb2.JOB_REMAPS, job, ranks=[0], reason=told)
            if word.to_epoch == job.newest_mapping.epoch:
                self._hear(job, change, rank, word)
        return self._answer(job, rank, word.to_epoch)

    def epoch_to(self, job: Job, rank: int) -> int:
        """Of the mapping that a rank is to ask for; 0: there is none, or it has heard all of it."""
        change = job.change
        return job.newest_mapping.epoch if change is not None and change.is_news_for(rank) else 0

    def left(self, job: Job, rank: int) -> None:
        """A rank has left; others are still there."""
        change = job.change
        if change is None:
            return
        if change.is_undecided:
            self.call_off(job, f"rank {rank} has left")
        else:
            self._go_on(job, change)

    def expire(self) -> None:
        """Calls off what was not decided in time."""
        now_s = self._clock()
        for job in self._registry:
            change = job.change
            if change is None or change.stage is not Stage.ASKED or not job.members:
                continue
            if now_s - change.since_s >= DECIDE_S:
                late = change.not_asked(job.members) or [0]
                has = "has" if len(late) == 1 else "have"
                what = "asked for it" if late != [0] else "said when"
                self.call_off(job, f"{ranks_text(late)} {has} not {what} in {DECIDE_S:g} s")

    def call_off(self, job: Job, why: str) -> None:
        """Ends a change that is not decided yet: the job keeps the mapping that it has."""
        change = job.change
        assert change is not None
        change.on(Step.CALLED_OFF)
        self._record.save("remap_off", job)
        self._tell(pb2.JOB_REMAP_OFF, job, reason=f"to {_size(change.other, job.mode)}: {why}")
        self._clear(job, change)

    def survives(self, job: Job, switch: str) -> bool:
        """Whether the job needs nothing of this switch but what a change can be called off for."""
        change, has = job.change, job.mapping
        return change is not None and change.is_undecided and has.shares_slots_of(switch)

    def restore(self, job: Job) -> None:
        """Goes on with a change of a job that was read from the store, and has not ended."""
        change = job.change
        if change is None:
            return
        change.since_s = self._clock()
        if change.stage is Stage.INSTALLING:
            self.call_off(job, "the controller was started again before any rank knew of it")
        elif change.stage in (Stage.OFF, Stage.CLEARING):
            self._clear(job, change)
        else:
            self._go_on(job, change)

    async def _install(self, job: Job, change: Change, begun: asyncio.Future[None]) -> None:
        def is_wanted() -> bool:
            return _is_under_way(job, change) and change.stage is Stage.INSTALLING

        try:
            await spread.install_other(job, self._others(change), is_wanted)
        except SwitchError as error:
            if is_wanted():
                self.call_off(job, str(error))
            fail(begun, error)
        else:
            if is_wanted():
                change.since_s = self._clock()
                change.on(Step.INSTALLED)
                self._record.save("remap_ask", job)
                told = f"to {_size(change.other, job.mode)}: {change.why}"
                self._tell(pb2.JOB_REMAPS, job, reason=told)
                begun.set_result(None)
            fail(begun, JobConflictError(f"job {job.name!r} ends, or a rank has left it"))
        finally:
            fail(begun, StandbyError("standby: the controller is stopping"))

    def _hear(self, job: Job, change: Change, rank: int, word: Word) -> None:
        if word.declined and change.is_undecided:
            self.call_off(job, f"rank {rank} declines{word.reason and f': {word.reason}'}")
            return
        if word.first_operation and change.decide(job.name, word.first_operation):
            self._record.save("remap_decide", job)
            told = f"from operation {word.first_operation} on"
            self._tell(pb2.JOB_REMAPS, job, reason=told)
        if word.done:
            change.finish(job.name, rank)
        self._go_on(job, change)

    def _answer(self, job: Job, rank: int, to_epoch: int) -> Told | None:
        change = job.change
        if change is not None:
            new = job.newest_mapping
            terms = change.terms(rank, job.members, knows=to_epoch == new.epoch)
            self._go_on(job, change)
            if terms is not None:
                return Told(new, terms)
        if to_epoch and to_epoch == job.mapping.epoch:
            return Told(job.mapping, Terms(job.first_operation, waits=False))
        return None

    def _go_on(self, job: Job, change: Change) -> None:
        """Takes the next step, if nobody is waited for."""
        step = change.next_step(job.members)
        if step is Step.DONE:
            remapping.turn(job)
            for switch in self._switches.values():
                switch.swap(job)
            self._record.save("remap_turn", job)
            self._clear(job, change)
        elif step is Step.SEEN:
            change.on(step)
            self._over(job, is_new=True)

    def _clear(self, job: Job, change: Change) -> None:
        """Removes what is of the other mapping alone, then frees it."""

        def is_wanted() -> bool:
            return _is_under_way(job, change)

        def removed(switch: Switch) -> None:
            if len(change.other.memory) > 1:  # the others may keep it waiting for long
                remapping.release(self._registry, job, switch.name)
                self._record.save("remap_free", job)
                switch.forget_other(job)

        async def attempt() -> None:
            await spread.remove_other(job, self._others(change), is_wanted, removed)
            if not is_wanted():  # all of the job goes, or has gone
                return
            for switch in self._others(change):
                switch.forget_other(job)
            if change.stage is Stage.CLEARING and change.in_place:
                change.on(Step.OPENED)
                for name in list(change.other.memory):
                    remapping.release(self._registry, job, name)
                self._record.save("remap_open", job)
                told = "the former slots are free: ranks may begin"
                self._tell(pb2.JOB_REMAPS, job, reason=told)
            else:
                is_new = change.has_turned
                change.on(Step.REMOVED)
                self._over(job, is_new=is_new)

        self._background.insist(f"removing what job {job.name!r} does not use", attempt)

    def _over(self, job: Job, *, is_new: bool) -> None:
        assert job.change is not None
        former = job.change.other.mode
        remapping.end(self._registry, job)
        self._record.save("remap_over", job)
        if is_new:
            told = f"{_size(job.mapping, former)}, from operation {job.first_operation} on"
            self._tell(pb2.JOB_REMAPPED, job, reason=told)
            log_shapes(job)

    def _others(self, change: Change) -> list[Switch]:
        return [self._switches[name] for name in change.other.memory]


def _is_under_way(job: Job, change: Change) -> bool:
    """Whether it is still this change, and the job has not ended."""
    return job.change is change and bool(job.members)


def _size(mapping: JobMapping, beside: str) -> str:
    """``32 slots, 32..63, window 16``; of a tree where its slots are.

    ``beside``: the mode of the mapping that it is beside.
    """
    mode = "" if mapping.mode == beside else f"mode {mapping.mode}, "
    return f"{mode}{mapping.slots} slots, {mapping.where_text()}, window {mapping.window}"
