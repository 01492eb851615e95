"""One switch of a controller, by name: what jobs have on it, and what they shall have."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from ina.controller.config import SwitchConfig
from ina.controller.errors import SwitchError
from ina.controller.job import Endpoint, Job, JobState
from ina.controller.switches.capacity import Capacity
from ina.controller.switches.items import Entry, Item
from ina.controller.switches.plan import JobPlan, plan_job
from ina.controller.switches.reconcile import SwitchState, compare, job_number, slots_of
from ina.controller.switches.writer import JobWriter

_log = logging.getLogger(__name__)


class Switch:
    """For one term of a controller; its writer may get another session meanwhile.

    Who writes holds ``turn``: one task at a time. Methods that talk to the switch raise
    :class:`SwitchError`, and want the turn of whoever calls them.
    """

    def __init__(
        self,
        config: SwitchConfig,
        writer: JobWriter,
        capacity: Capacity,
        *,
        unreachable_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """``unreachable_s``: for how long it could not be reached; 0: it can."""
        self.config = config
        self.name = config.name
        self.writer = writer
        self.capacity = capacity
        self.unreachable_s = unreachable_s
        self.foreign: list[Item] = []
        """What the last look at it found that no job owns."""
        self.turn = asyncio.Lock()
        self._plans: dict[Job, JobPlan] = {}

    def __contains__(self, job: Job) -> bool:
        """Whether the job has anything here, or had."""
        return job in self._plans

    def plan(self, job: Job) -> JobPlan:
        """What the job has here, or had; :class:`KeyError`: nothing."""
        return self._plans[job]

    def adopt(self, job: Job, endpoints: dict[int, Endpoint]) -> None:
        """The job was here before this term; ``endpoints``: of all its ranks, here or not."""
        self._plans[job] = plan_job(replace(job, members=endpoints))

    def forget(self, job: Job) -> None:
        """Nothing of the job is here any more."""
        self._plans.pop(job, None)

    async def install(self, job: Job) -> None:
        """Puts a complete job in place."""
        await self.writer.install(self._plans[job], job.number, job.epoch)

    def expect(self, job: Job) -> None:
        """The job will be installed soon, with these members."""
        self._plans[job] = plan_job(job)

    def replan(self, job: Job, plan: JobPlan) -> None:
        """From now on the job has ``plan`` here."""
        self._plans[job] = plan

    async def remove(self, job: Job) -> None:
        """Takes the job off."""
        await self.writer.remove(self._plans[job])

    async def remove_member(self, job: Job, rank: int) -> None:
        """Takes one worker off, if its job is here."""
        if job in self._plans:
            await self.writer.remove_entry(self._plans[job].member(rank))

    def wanted(self, job: Job) -> list[Item]:
        """What of the job shall be here now."""
        # One that starts waits for its turn to write: it has nothing here yet.
        if not job.members or job.state not in (JobState.RUNNING, JobState.LEAVING):
            return []
        *stages, _ = self._plans[job].stages
        members: list[Entry] = [self._plans[job].member(rank) for rank in sorted(job.members)]
        return [*(item for stage in stages for item in stage), *members]

    async def make_agree(self, jobs: Iterable[Job], state: SwitchState) -> dict[Job, SwitchError]:
        """Makes it have what these jobs, all that are here, shall have.

        ``state``: what it has. Returns jobs whose entries it refuses to take back.
        """
        by_number = {job.number: job for job in jobs}
        difference = compare({number: self.wanted(job) for number, job in by_number.items()}, state)
        # A group may still use what is extra.
        await self.writer.modify(difference.wrong)
        await self.writer.delete(difference.extra)
        refused = {}
        for number, items in difference.missing.items():
            try:
                await self.writer.insert(items)
            except SwitchError as error:
                if not error.refused:
                    raise
                refused[by_number[number]] = error
        changed = sum(map(len, difference.missing.values())) + len(difference.wrong)
        differed = changed or difference.extra
        _log.log(
            logging.WARNING if differed else logging.INFO,
            "reconciled the switch: %d entries written, %d removed",
            changed,
            len(difference.extra),
        )
        self._found_foreign(difference.foreign)
        return refused

    async def remove_foreign(self, jobs: Iterable[Job]) -> list[Item]:
        """Removes what none of these jobs, all that are here, owns; returns it."""
        wanted = {job.number: self.wanted(job) for job in jobs}
        foreign = compare(wanted, await self.writer.read_state()).foreign
        await self.writer.delete(foreign)
        self._found_foreign([])
        return foreign

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
        self.capacity.set_foreign(numbers, slots_of(foreign))
