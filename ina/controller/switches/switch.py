"""One switch of a controller, by name: what jobs have on it, and what they shall have."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ina import modes
from ina.controller.change import Stage
from ina.controller.config import SwitchConfig
from ina.controller.job import Job, JobState
from ina.controller.switches.capacity import Capacity
from ina.controller.switches.link import own_addresses
from ina.controller.switches.plan import JobPlan, plan_job
from ina.controller.switches.reconcile import SwitchState, compare, job_number, slots_of
from ina.controller.switches.writer import JobWriter
from ina.protocol.peer import Peer
from ina.tables.errors import SwitchError
from ina.tables.values import Item
from ina.trees.endpoint import Endpoint
from ina.trees.mapping import Mapping as JobMapping

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
        addresses: Mapping[str, Peer] | None = None,
        routers: Mapping[int, int] | None = None,
        is_known: bool = True,
    ) -> None:
        """What jobs have here.

        Args:
            config: of the switch.
            writer: to it.
            capacity: what jobs can have.
            unreachable_s: for how long it could not be reached; 0: it can.
            addresses: of the other switches of trees that it is a node of, by name.
            routers: by port, the MAC address of the switch there, where it passes on by IP address
                what is sent to it.
            is_known: whether nothing is on it that this controller has not read.
        """
        self.config = config
        self.name = config.name
        self.writer = writer
        self.capacity = capacity
        self.unreachable_s = unreachable_s
        self.foreign: list[Item] = []
        """What the last look at it found that no job owns."""
        self.is_known = is_known
        """Nothing is installed before: a slot may hold an epoch that is newer than the job's."""
        self.turn = asyncio.Lock()
        self._addresses = addresses or {}
        self._routers = routers or {}
        self._plans: dict[Job, JobPlan] = {}
        self._installed: set[Job] = set()
        self._others: dict[Job, JobPlan] = {}
        """Of jobs that change: by the mapping beside the one that they have."""
        self._others_installed: set[Job] = set()

    def __contains__(self, job: Job) -> bool:
        """Whether the job has anything here, or had."""
        return job in self._plans

    def plan(self, job: Job) -> JobPlan:
        """What the job has here, or had; :class:`KeyError`: nothing."""
        return self._plans[job]

    def adopt(self, job: Job, endpoints: dict[int, Endpoint]) -> None:
        """The job was here before this term; ``endpoints``: of all its ranks, here or not."""
        if self.name in job.memory:
            self._plans[job] = self.plan_with(job, endpoints)
        if job.change is not None and self.name in job.change.other.memory:
            self._others[job] = self.plan_with(job, endpoints, job.change.other)

    def forget(self, job: Job) -> None:
        """Nothing of the job is here any more."""
        self._plans.pop(job, None)
        self._installed.discard(job)
        self.forget_other(job)

    async def install(self, job: Job) -> None:
        """Puts what a complete job needs here in place."""
        if not self.is_known:
            raise SwitchError(f"switch {self.config.grpc_addr}: it has not been reached yet")
        await self.writer.install(self._plans[job], job.mapping.numbers, job.epoch)
        self._installed.add(job)

    def expect(self, job: Job) -> None:
        """The job will be installed soon, with these members."""
        self._plans[job] = self.plan_with(job, job.members)

    def plan_with(
        self, job: Job, members: Mapping[int, Endpoint], by: JobMapping | None = None
    ) -> JobPlan:
        """What the job would have here if its workers were these; ``by``: another mapping."""
        sent = replace(job, members=dict(members))
        age_us, routers = self.config.age_us, self._routers
        return plan_job(sent, self.name, self._addresses, age_us=age_us, by=by, routers=routers)

    def reaches(self, job: Job, rank: int) -> bool:
        """Whether the worker sends to this switch, by a mapping that the job has."""
        plans = (self._plans.get(job), self._others.get(job))
        return any(plan is not None and rank in plan.endpoints for plan in plans)

    def replans(self, job: Job) -> list[tuple[JobPlan, JobPlan]]:
        """What the job has here, by each of its mappings, and what its workers want now."""
        found = []
        for by in job.mappings:
            is_other = job.change is not None and by is job.change.other
            plan = (self._others if is_other else self._plans).get(job)
            if plan is not None:
                workers = {**plan.endpoints, **job.members}  # with those who have left
                found.append((plan, self.plan_with(job, workers, by)))
        return found

    def replan(self, job: Job, former: JobPlan, plan: JobPlan) -> None:
        """From now on the job has ``plan`` here, instead of ``former``."""
        for plans in (self._plans, self._others):
            if plans.get(job) is former:
                plans[job] = plan

    async def remove(self, job: Job) -> None:
        """Takes the job off, also one of which it is not known what it has here."""
        if job in self._others:
            await self.remove_other(job)
        if job in self._plans:
            await self.writer.remove(self._plans[job])
        elif job not in self._others:
            state = await self.writer.read_state()
            await self.writer.delete(compare(dict.fromkeys(job.numbers, ()), state).extra)
        self._installed.discard(job)

    async def remove_member(self, job: Job, rank: int) -> None:
        """Takes one worker off, if its job is here."""
        for plan in (self._others.get(job), self._plans.get(job)):
            if plan is not None and rank in plan.endpoints:
                for entry in plan.members[rank]:
                    await self.writer.remove_entry(entry)

    def expect_other(self, job: Job) -> None:
        """The job, of which nobody has left, will have its other mapping here soon."""
        assert job.change is not None
        self._others[job] = self.plan_with(job, job.members, job.change.other)

    async def install_other(self, job: Job) -> None:
        """Puts the job's other mapping in place, beside the one it has."""
        assert job.change is not None
        other = job.change.other
        if not self.is_known:
            raise SwitchError(f"switch {self.config.grpc_addr}: it has not been reached yet")
        cleared = () if other.numbers == job.mapping.numbers else other.numbers
        await self.writer.install(self._only_others(job), cleared, other.epoch)
        self._others_installed.add(job)

    async def remove_other(self, job: Job) -> None:
        """Takes off what is of the job's other mapping alone."""
        if job in self._others:
            await self.writer.remove(self._only_others(job))
        self._others_installed.discard(job)

    def forget_other(self, job: Job) -> None:
        """Nothing is of its other mapping alone any more."""
        self._others.pop(job, None)
        self._others_installed.discard(job)

    def swap(self, job: Job) -> None:
        """The mapping that the job has is now the other one."""
        plan, other = self._plans.pop(job, None), self._others.pop(job, None)
        self._others_installed.discard(job)
        if plan is not None:
            self._others[job] = plan
        if other is not None:
            self._plans[job] = other

    def _has_both(self, job: Job) -> bool:
        if job.change is None:
            return False
        is_begun = job.change.stage is Stage.INSTALLING and job in self._others_installed
        return job.change.has_both or is_begun

    def _only_others(self, job: Job) -> JobPlan:
        other, plan = self._others[job], self._plans.get(job)
        return other if plan is None else other.beside(plan)

    def wanted(self, job: Job) -> list[Item]:
        """What of the job shall be here now."""
        # What begins waits for its turn to write: nothing of it is here until it is installed.
        has_begun = job.state in (JobState.RUNNING, JobState.LEAVING) or job in self._installed
        if not job.members or not has_begun:
            return []
        other = self._others.get(job) if self._has_both(job) else None
        plans = (self._plans.get(job), other)
        # Two mappings share what has no epoch.
        items = (item for plan in plans if plan is not None for item in _here(plan, job))
        return list(dict.fromkeys(items))

    async def make_agree(self, jobs: Iterable[Job], state: SwitchState) -> dict[Job, SwitchError]:
        """Makes it have what these jobs, all that are here, shall have.

        ``state``: what it has. Returns jobs whose entries it refuses to take back.
        """
        own = modes.of(self.config.mode).own_keys(own_addresses(self.config), self.config.rings)
        passing = modes.of(self.config.mode).passing(self.config.bystanders)
        await self.writer.put_passing(passing, state.passing)
        await self.writer.put_addresses(own, state.addresses)
        jobs = list(jobs)
        by_number = {number: job for job in jobs for number in job.numbers}
        difference = compare(self.wanted_of(jobs), state)
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
        self.is_known = True
        return refused

    async def remove_foreign(self, jobs: Iterable[Job]) -> list[Item]:
        """Removes what none of these jobs, all that are here, owns; returns it."""
        foreign = compare(self.wanted_of(jobs), await self.writer.read_state()).foreign
        await self.writer.delete(foreign)
        self._found_foreign([])
        return foreign

    def wanted_of(self, jobs: Iterable[Job]) -> dict[int, list[Item]]:
        """By job number, what of these jobs shall be here now."""
        wanted: dict[int, list[Item]] = {}
        for job in jobs:
            wanted |= {number: [] for number in job.numbers}
            for item in self.wanted(job):
                wanted[job_number(item)].append(item)
        return wanted

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


def _here(plan: JobPlan, job: Job) -> list[Item]:
    """Of those ranks that have not left."""
    *stages, _ = plan.stages
    here = [row for rank, own in plan.members.items() if rank in job.members for row in own]
    return [*(item for stage in stages for item in stage), *here, *plan.switches]
