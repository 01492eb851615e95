"""How many slots each job should have: a memory policy, asked about the jobs that there are.

What policies need to know of jobs is learned and kept here. No I/O; time is passed in.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ina.controller.errors import NoRoomError
from ina.controller.job import Job, JobSpec, JobState
from ina.controller.jobs.placement import first_with_room
from ina.controller.jobs.registry import Registry
from ina.controller.memory.demand import Demand, StepModel, usable
from ina.controller.memory.policies import Policy, reason
from ina.controller.memory.resizes import (
    Clearing,
    Restraint,
    clearing,
    is_last,
    is_spent,
    pays,
    restrained,
    settled,
)
from ina.controller.slots.needs import Familiar, Needs, Said
from ina.protocol.spec import VALUE_BYTES
from ina.rpc import controller_pb2 as pb2
from ina.trees.errors import JobRequestError


@dataclass(frozen=True)
class Planned:
    """What a job would get, and what that does to others."""

    slots: int
    """0: none."""
    demand: Demand
    others: Mapping[str, tuple[int, int]]
    """By name: slots before and after, of those whose size would change."""


class Sizing:
    """Of all jobs of a registry."""

    def __init__(
        self,
        registry: Registry,
        policy: Policy,
        *,
        floor: int,
        default: int,
        clock: Callable[[], float],
        unix_clock: Callable[[], float],
    ) -> None:
        """``floor``: slots that a running job keeps; ``default``: of a job that nobody knows."""
        self.policy = policy
        self.has_aggregator: Callable[[Job], bool] = lambda _job: False
        """Whether what a job sends beyond its slots is summed elsewhere, by servers among its
        workers' links: of no job that ina runs. In mode ``pool`` slots alone carry its sums; in
        mode ``shared`` its window is that at its aggregator, whether it finds slots or not, and no
        policy sizes it."""
        self._registry = registry
        self._floor = floor
        self._default = default
        self._clock = clock
        self._unix_clock = unix_clock
        self._familiar = Familiar()
        self._needs: weakref.WeakKeyDictionary[Job, Needs] = weakref.WeakKeyDictionary()
        self._restraints: weakref.WeakKeyDictionary[Job, Restraint] = weakref.WeakKeyDictionary()
        self._left_alone: weakref.WeakKeyDictionary[Job, float] = weakref.WeakKeyDictionary()

    def hear(self, job: Job, rank: int, progress: pb2.Progress) -> None:
        """A worker says how it gets on."""
        needs = self.needs(job)
        if needs.hear(rank, progress, job.slots, self._clock()):
            self._familiar.learn(job.name, needs.steps(self._default))

    def needs(self, job: Job) -> Needs:
        """What is known of a job."""
        found = self._needs.get(job)
        if found is None:
            found = self._needs[job] = self._new_needs(job.spec, job)
        return found

    def known_steps(self, job: Job) -> StepModel | None:
        """What its workers' reports say of its steps; None: not enough yet."""
        needs = self.needs(job)
        return needs.steps(self._default) if needs.is_known else None

    def resized(self, job: Job) -> None:
        """Its size has changed."""
        self._restraint(job).changed(self._clock())

    def pays(self, job: Job, slots: int) -> bool:
        """Whether a running job gains enough by so many slots, more than it has."""
        return pays(self._demand(job), slots)

    def leave_alone(self, job: Job, for_s: float) -> None:
        """A job could not be resized: it is not tried again for so long."""
        self._left_alone[job] = self._clock() + for_s

    def grant(self, spec: JobSpec, switches: Iterable[str] = (), most: int | None = None) -> int:
        """Slots that a new job is to take at each switch: what it is to have, or what fits now.

        ``switches``: where all of them are; none: any one that can be reached. ``most``: that its
        tenant's quota leaves at each, though its floor at least; None: any number. Raises
        :class:`NoRoomError`: not even its floor fits anywhere now, with the numbers;
        :class:`JobRequestError`: it asks for what no job can have.
        """
        self._check(spec)
        if not self.policy.resizes:
            return spec.slots
        all_of_them = tuple(switches)
        found = {name: self._fitting(spec, name) for name in self._candidates(all_of_them)}
        slots = min(found.values()) if all_of_them else max(found.values())
        if not slots:
            floor = self.demand_of(spec).floor
            whys = (
                f"{self._registry.switches[name].memory.why_full(spec.name, floor)}"
                for name, fits in found.items()
                if not fits
            )
            raise NoRoomError(
                f"job {spec.name!r}: no slots left: {'; '.join(whys)}; policy"
                f" {self.policy.name!r} leaves jobs that run their floors"
            )
        if most is not None and slots > most:  # below its floor the quota refuses it
            return max(usable(most), self.demand_of(spec).floor)
        return slots

    def least(self, spec: JobSpec) -> int:
        """Slots without which it cannot begin; 0: what is usual."""
        return self.demand_of(spec).floor if self.policy.resizes else spec.slots

    def would_have(self, spec: JobSpec, switches: Iterable[str] = ()) -> int:
        """Slots that the policy gives it, were all others resized already; 0: none.

        ``switches``: as of :meth:`grant`.
        """
        if not self.policy.resizes:
            return 0
        all_of_them = tuple(switches)
        shares = [self._share(spec, name) for name in self._candidates(all_of_them)]
        return min(shares) if all_of_them else max(shares)

    def targets(self, waiting: Sequence[Demand] = ()) -> dict[Job, int]:
        """The slots of those running jobs that are to have another number of them.

        ``waiting``: jobs that have none yet, for which there is to be room.
        """
        if not self.policy.resizes:
            return {}
        found: dict[Job, int] = {}
        for name in self._registry.switches:
            jobs = self._resizable(name)
            sizes = self._settled(name, [*map(self._demand, jobs), *waiting])
            for job in jobs:
                found[job] = min(found.get(job, sizes[job.name]), sizes[job.name])
        return {job: slots for job, slots in found.items() if slots != job.slots}

    def reason(self, job: Job, slots: int, waiting: Sequence[Demand] = ()) -> str:
        """Why a job has, or is to have, so many slots at each of its switches; of a tree where most
        share them. ``waiting``: jobs that have none yet."""
        if not self.policy.resizes:
            asked = job.spec.slots
            how = f"it asked for {asked}" if asked else "it did not ask for another number"
            return f"policy {self.policy.name}: {how}"
        beside = [[it for it in self._resizable(at) if it is not job] for at in job.memory]
        most: list[Job] = max(beside, key=len, default=[])
        others = [*map(self._demand, most), *waiting]
        return reason(self.policy.name, self._demand(job), slots, others)

    def release(self) -> None:
        """What :meth:`clearing` has held is anybody's again, where no change is under way."""
        if all(job.change is None for job in self._registry):
            for capacity in self._registry.switches.values():
                capacity.memory.hold(range(0), "")

    def others_change(self, job: Job) -> bool:
        """Whether one does at its switches: when that is over, some slots there are free."""
        return any(
            other.change is not None and not set(other.switches).isdisjoint(job.switches)
            for other in self._registry
        )

    def clearing(self, job: Job, slots: int) -> Clearing | None:
        """Which jobs to move so that one may grow to ``slots``; None: that is not worth it, or it
        has several switches, or another change is under way at its switch."""
        (switch, *others) = job.memory
        if others or self.others_change(job):
            return None
        there = (other for other in self._registry if switch in other.switches)
        jobs = [other for other in there if not other.shares_slots]
        movable = {
            it.name: it.memory[switch]
            for it in self._resizable(switch)
            if it is not job and not is_last(self._restraint(it).used(self._clock()))
        }
        fixed = [it.memory[switch] for it in jobs if it.name not in movable and it is not job]
        memory = self._registry.switches[switch].memory
        found = clearing(slots, memory.total, movable, fixed, job.memory[switch])
        if found is not None:
            memory.hold(found.block, job.name)
        return found

    def plan(self, spec: JobSpec, steps: StepModel | None = None) -> Planned:
        """What a new job would get once others are resized, at the switch where that is most.
        ``steps``: as of :meth:`demand_of`.

        Raises :class:`JobRequestError`: it asks for what no job can have.
        """
        self._check(spec)
        demand = self.demand_of(spec, steps)
        plans = [self._plan_at(demand, name) for name in self._candidates(())]
        return max(plans, key=lambda plan: plan.slots)

    def refusal(self, spec: JobSpec, slots: int) -> str:
        """Why a job that would have ``slots`` gets none, with numbers; empty: it gets them."""
        try:
            own = {"": slots or self.demand_of(spec).floor}
            self._registry.admission.check_quota(spec, own, self._registry)
            if not self.policy.resizes:
                islands = self._registry.site.switches()
                first_with_room(spec.name, spec.slots, islands)
        except (NoRoomError, JobRequestError) as error:
            return str(error)
        if slots:
            return ""
        return (
            f"job {spec.name!r}: policy {self.policy.name!r} gives it none: jobs that run keep"
            f" their floors, and {self._free()} slots are free"
        )

    def demand_of(self, spec: JobSpec, steps: StepModel | None = None) -> Demand:
        """Of a job that has no slots yet. ``steps``: None: nobody knows them yet."""
        needs = self._new_needs(spec)
        return self._made(
            Demand(
                spec.name,
                steps or needs.steps(spec.slots or self._default),
                1.0,
                asked=spec.slots,
                priority=spec.priority,
                since_s=self._clock(),
            ),
            needs,
            0.0,
        )

    def _plan_at(self, demand: Demand, switch: str) -> Planned:
        jobs = {job.name: job for job in self._resizable(switch)}
        demands = [*map(self._demand, jobs.values()), demand]
        sizes = self._settled(switch, demands)
        others = {
            name: (job.slots, sizes[name]) for name, job in jobs.items() if sizes[name] != job.slots
        }
        return Planned(sizes[demand.name], demand, others)

    def _settled(self, switch: str, demands: list[Demand]) -> dict[str, int]:
        total = self._total(switch)
        return settled(demands, self.policy.sizes(demands, total), total)

    def _share(self, spec: JobSpec, switch: str) -> int:
        demands = [*map(self._demand, self._resizable(switch)), self.demand_of(spec)]
        total = self._total(switch)
        return self.policy.sizes(demands, total)[spec.name]

    def _fitting(self, spec: JobSpec, switch: str) -> int:
        """The most, up to its share, that is free side by side; 0: not even its floor."""
        slots, memory = self._share(spec, switch), self._registry.switches[switch].memory
        floor = self.demand_of(spec).floor
        while slots >= floor and not memory.fits(spec.name, slots, []):
            slots //= 2
        return slots if slots >= floor else 0

    def _total(self, switch: str) -> int:
        """Slots that are free or of jobs that can be resized, also those that will be when changes
        under way are over: others have the rest, or nobody may."""
        memory = self._registry.switches[switch].memory
        going = sum(_going(job, switch, memory.total) for job in self._registry)
        # Of one of whose trees some alone pass here, that is less than all it has.
        held = sum(job.memory[switch].slots for job in self._resizable(switch))
        return memory.total - memory.used() + going + held

    def _resizable(self, switch: str) -> list[Job]:
        now_s = self._clock()
        return [
            job
            for job in self._registry
            if job.state is JobState.RUNNING
            and job.change is None
            and switch in job.memory
            and not job.shares_slots
            and self._left_alone.get(job, now_s) <= now_s
            and not is_spent(self._restraint(job).used(now_s))
        ]

    def _demand(self, job: Job) -> Demand:
        needs, now_s = self.needs(job), self._clock()
        return self._made(
            Demand(
                job.name,
                needs.steps(job.spec.slots or self._default),
                1.0,
                slots=job.slots,
                asked=job.spec.slots,
                priority=job.priority,
                changes=self._restraint(job).used(now_s),
                since_s=job.created_s,
            ),
            needs,
            now_s - job.created_s,
        )

    def _made(self, demand: Demand, needs: Needs, age_s: float) -> Demand:
        """With what is left of it, and until when."""
        floor = min(self._floor, usable(demand.asked) or self._floor)
        demand = restrained(replace(demand, floor=floor))
        deadline_s = needs.said.deadline_unix_s and needs.said.deadline_unix_s - self._unix_clock()
        return replace(
            demand,
            steps_left=needs.steps_left(demand.steps, demand.useful, age_s),
            deadline_s=deadline_s or None,
        )

    def _restraint(self, job: Job) -> Restraint:
        found = self._restraints.get(job)
        if found is None:
            found = self._restraints[job] = Restraint()
        return found

    def _new_needs(self, spec: JobSpec, job: Job | None = None) -> Needs:
        values = next(iter(self._registry.switches.values())).values
        servers = job.world_size if job is not None and self.has_aggregator(job) else 0
        said = Said(spec.deadline_unix_s, spec.steps)
        return Needs(said, values * VALUE_BYTES, servers, self._familiar.guess(spec.name))

    def _check(self, spec: JobSpec) -> None:
        """Raises :class:`JobRequestError`: no switch ever grants so many slots."""
        next(iter(self._registry.switches.values())).memory.cost(spec.name, spec.slots)

    def _free(self) -> int:
        return self._registry.slots_total() - self._registry.slots_used()

    def _candidates(self, switches: Iterable[str]) -> list[str]:
        chosen = list(switches)
        if chosen:
            return chosen
        all_of_them = self._registry.site.switches()
        reached = [name for name, capacity in all_of_them.items() if capacity.is_reached()]
        return reached or list(all_of_them)


def _going(job: Job, switch: str, total: int) -> int:
    """How many of the first ``total`` slots of a switch a job has, and shall not have when its
    change is over."""
    if job.change is None:
        return 0
    ranges = [it.memory[switch] for it in job.mappings if switch in it.memory]
    had = {slot for it in ranges for slot in range(it.first, min(it.end, total))}
    new = job.newest_mapping.memory.get(switch)
    return len(had.difference(() if new is None else range(new.first, new.end)))
