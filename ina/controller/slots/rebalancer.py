"""Resizes jobs when others come and go, so that they have what the memory policy gives them."""

from __future__ import annotations

import contextlib

from ina.controller.errors import JobConflictError, NoRoomError, StandbyError, UnknownJobError
from ina.controller.job import Job
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.rounds import Rounds
from ina.controller.slots.memory import Memory
from ina.errors import InaError
from ina.rpc import controller_pb2 as pb2
from ina.tables.errors import SwitchError
from ina.trees.errors import JobRequestError

PERIOD_S = 3.0
"""Also when nobody comes or goes: what is known of jobs changes, and deadlines come closer."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 30.0, 600.0
"""A job that could not be resized, or would not, is left alone for so long; twice, and so on."""

_KICKS = frozenset(
    (pb2.JOB_RUNNING, pb2.JOB_ENDED, pb2.JOB_REMAPPED, pb2.JOB_REMAP_OFF, pb2.SWITCH_BACK)
)


class Rebalancer:
    """In the coordinator's event loop, as long as its task runs."""

    def __init__(self, memory: Memory, coordinator: Coordinator) -> None:
        self._registry = coordinator.registry
        self._changes = coordinator.changes
        self._sizing = memory.sizing
        self._decisions = memory.decisions
        self._queue = memory.queue
        self._pauses_s: dict[str, float] = {}
        work = self.rebalance if memory.policy.resizes else None
        self._rounds = Rounds(
            *("the memory policy", work, PERIOD_S),
            events=coordinator.events,
            hear=self._hear,
            kicked=memory.kicked,
        )

    def start(self) -> None:
        """From now on jobs are resized, and who waits for slots hears of them."""
        self._rounds.start()

    async def close(self) -> None:
        """No more resizes; those under way go on."""
        await self._rounds.close()

    async def rebalance(self) -> None:
        """Asks the policy and begins what it wants: who shrinks before who grows."""
        self._sizing.release()
        waiting = self._queue.demands()
        targets = self._sizing.targets(waiting)
        shrink = [job for job, slots in targets.items() if slots < job.slots]
        grow = [job for job, slots in targets.items() if slots > job.slots]
        # Who is to have most takes a large gap before others take parts of it.
        grow.sort(key=lambda job: -targets[job])
        takers = [*(repr(job.name) for job in grow), *(repr(it.name) for it in waiting)]
        room = f"; makes room for {', '.join(takers)}" if takers else ""
        for job in [*shrink, *grow]:
            why = self._sizing.reason(job, targets[job], waiting)
            await self._begin(job, targets[job], why + (room if job in shrink else ""))

    async def _begin(self, job: Job, slots: int, why: str) -> None:
        """Towards ``slots``; where these are not free side by side, half as far, and so on, as long
        as that is worth a change; when others have changed, if some do now, for that frees slots.
        """
        before = job.slots
        policy = f"policy {self._sizing.policy.name}"
        while slots != before:
            try:
                await self._changes.resize(job.name, slots, policy)
            except NoRoomError:
                if self._sizing.others_change(job):
                    return
                if await self._clear(job, slots):
                    return  # and grows when these have moved
                if slots // 2 <= before or not self._sizing.pays(job, slots // 2):
                    return  # when others have shrunk, it is looked at again
                slots //= 2
                continue
            except (JobConflictError, UnknownJobError, StandbyError):
                return  # it ends, or changes already
            except (JobRequestError, SwitchError) as error:
                self._failed(job, before, slots, str(error))
                return
            what = "grow" if slots > before else "shrink"
            self._decisions.add(job.name, what, why, before=before, slots=slots)
            return

    async def _clear(self, job: Job, slots: int) -> bool:
        """Moves jobs out of the way of one that is to have so many slots; whether any moves."""
        found = self._sizing.clearing(job, slots)
        begun = False
        for name in () if found is None else found.moves:
            other = self._registry.get(name)
            why = f"makes room for {job.name!r} to have {slots} slots"
            with contextlib.suppress(InaError):
                await self._changes.change(other, why=why)
                self._decisions.add(name, "move", why, before=other.slots, slots=other.slots)
                begun = True
        return begun

    def _failed(self, job: Job, before: int, slots: int, why: str) -> None:
        pause_s = self._pauses_s.get(job.name, FIRST_PAUSE_S)
        self._pauses_s[job.name] = min(2 * pause_s, LONGEST_PAUSE_S)
        self._sizing.leave_alone(job, pause_s)
        reason = f"{why}; left alone for {pause_s:g} s"
        self._decisions.add(job.name, "fail", reason, before=before, slots=slots)

    def _hear(self, event: pb2.JobEvent | None) -> bool:
        """What was missed is not heard again, but who waits and the policy look at what there is
        now."""
        if event is not None:
            if event.kind not in _KICKS:
                return False
            self._note(event)
        self._queue.wake()
        return True

    def _note(self, event: pb2.JobEvent) -> None:
        if event.kind == pb2.JOB_ENDED:
            self._pauses_s.pop(event.name, None)
            return
        try:
            job = self._registry.get(event.name)
        except UnknownJobError:
            return
        if event.kind == pb2.JOB_REMAPPED:
            self._pauses_s.pop(event.name, None)
            self._sizing.resized(job)
        elif event.kind == pb2.JOB_REMAP_OFF:
            self._failed(job, job.slots, 0, event.reason)
