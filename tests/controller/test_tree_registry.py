"""Trees over any fabric: slots are reserved on every switch of a job or on none, whoever ends."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ina.controller.config import TenantConfig
from ina.controller.errors import JobConflictError, NoRoomError
from ina.controller.job import Job, JobSpec, JobState
from ina.controller.jobs.admission import Admission
from ina.controller.jobs.numbers import EpochCounter
from ina.controller.jobs.registry import Registry
from ina.controller.memory import Allocator, FirstFit, StaticPool
from ina.controller.switches.capacity import Capacity
from ina.protocol import serial
from ina.protocol.peer import Peer
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError
from ina.trees.nearest import Nearest
from ina.trees.slots import SlotRange
from tests.selection import examples
from tests.worlds.fakes.racks import fabric, host

RACKS = 3
SIZES = {"leaf1": 32, "leaf2": 48, "leaf3": 16, "spine": 24}
"""Slots of each switch: which of them is full first depends on who comes."""


def make_registry(*, quota: int = 0, last_epoch: int = 0) -> Registry:
    pools: dict[str, Allocator] = {name: FirstFit(slots, 8) for name, slots in SIZES.items()}
    pools["leaf2"] = StaticPool(SIZES["leaf2"], 16)
    limits = {"default": TenantConfig(slots=quota, max_priority=9)}
    return Registry(
        {name: Capacity(pool, values=64) for name, pool in pools.items()},
        EpochCounter(last_epoch),
        range(1, 7),
        admission=Admission(limits, preempt=True),
        placement=lambda _: Nearest(fabric(RACKS)),
    )


def used(registry: Registry) -> dict[str, int]:
    return {name: it.memory.used() for name, it in registry.switches.items()}


def at(leaf: int, number: int) -> Endpoint:
    return Endpoint(Peer(host(leaf, number), 4000), number, switch=f"leaf{leaf}")


def joined(registry: Registry, name: str, leaves: list[int], slots: int, priority: int = 0) -> Job:
    """A job whose ranks have all joined."""
    job = registry.create(JobSpec(name, len(leaves), slots, priority=priority), 0.0)
    for rank, leaf in enumerate(leaves):
        registry.join(name, rank, at(leaf, rank + 1))
    return job


class Jobs(RuleBasedStateMachine):
    """Jobs come, are placed, pushed out, taken off one switch after the other, and adopted."""

    names = st.sampled_from("abcd")
    places = st.lists(st.integers(1, RACKS), min_size=1, max_size=5)

    def __init__(self) -> None:
        super().__init__()
        self.registry = make_registry()
        self.last_epoch = 0

    @rule(
        name=names, leaves=places, slots=st.sampled_from([0, 4, 8, 16]), priority=st.integers(0, 2)
    )
    def come(self, name: str, leaves: list[int], slots: int, priority: int) -> None:
        try:
            job = joined(self.registry, name, leaves, slots, priority)
        except JobConflictError:
            return
        before = used(self.registry)
        try:
            self.registry.place(job)
        except (NoRoomError, JobRequestError):
            assert used(self.registry) == before
            assert (job.state, job.forest, job.memory) == (JobState.JOINING, None, {})
            self.push_out(job)
            return
        self.started(job)

    def push_out(self, job: Job) -> None:
        try:
            victims = self.registry.victims_of(job)
        except JobRequestError:
            victims = []
        assert all(victim.priority < job.priority for victim in victims)
        for victim in victims:
            self.end(victim)
        if victims:
            self.registry.place(job)  # all that was in its way is gone
            self.started(job)
        else:
            self.registry.abandon(job)

    def end(self, job: Job) -> None:
        if job.state is JobState.STARTING:
            self.registry.failed(job)
        elif job.members:
            self.registry.end(job)
        self.registry.removed(job)

    def started(self, job: Job) -> None:
        assert job.state is JobState.STARTING
        assert serial.is_newer(job.epoch, self.last_epoch)
        self.last_epoch = job.epoch

    @rule(name=names, works=st.booleans())
    def switches_answer(self, name: str, works: bool) -> None:
        for job in self.registry:
            if job.name == name and job.state is JobState.STARTING:
                self.registry.installed(job) if works else self.registry.failed(job)

    @rule(name=names)
    def one_switch_is_done(self, name: str) -> None:
        for job in self.registry:
            if job.name == name and job.state in (JobState.RUNNING, JobState.LEAVING):
                if job.members:
                    self.registry.end(job)
                if len(job.memory) > 1:
                    self.registry.release(job, next(iter(job.memory)))
                else:
                    self.registry.removed(job)

    @rule()
    def a_successor_takes_over(self) -> None:
        jobs = list(self.registry)
        self.registry = make_registry(last_epoch=self.last_epoch)
        for job in jobs:
            self.registry.adopt(job)

    @invariant()
    def each_switch_has_what_its_jobs_have(self) -> None:
        jobs = list(self.registry)
        assert len({job.number for job in jobs}) == len(jobs)
        taken: dict[str, int] = dict.fromkeys(SIZES, 0)
        for job in jobs:
            if job.state in (JobState.STARTING, JobState.RUNNING):
                assert job.forest is not None
                assert list(job.memory) == [node.switch for node in job.forest.trees[0]]
                assert job.window == job.lanes
                assert all(2 * job.lanes <= it.slots for it in job.memory.values())
            for name, memory in job.memory.items():
                taken[name] += memory.reserved
        assert used(self.registry) == taken
        for name in SIZES:
            ranges = sorted(
                (job.memory[name] for job in jobs if name in job.memory), key=lambda it: it.first
            )
            assert all(a.end <= b.first for a, b in pairwise(ranges))


TestJobs = Jobs.TestCase
TestJobs.settings = settings(max_examples=examples(50), stateful_step_count=30, deadline=None)


@settings(max_examples=examples(60), deadline=None)
@given(
    leaves=st.lists(st.integers(1, RACKS), min_size=2, max_size=6),
    full=st.sets(st.sampled_from(sorted(SIZES)), min_size=1),
)
def test_every_switch_without_room_is_named_and_nothing_is_taken(
    leaves: list[int], full: set[str]
) -> None:
    registry = make_registry()
    for name in full:
        memory = registry.switches[name].memory
        while memory.fits("filler", 0, []):
            memory.take("filler", 0)
    job = joined(registry, "j", leaves, 0)
    before = used(registry)
    try:
        registry.place(job)
    except NoRoomError as error:
        said = str(error)
        assert job.state is JobState.JOINING
        assert used(registry) == before
        assert {name for name in SIZES if f"switch {name}:" in said} <= full
    else:
        assert job.forest is not None
        assert not full & set(job.forest.switches)


def test_a_quota_counts_slots_on_all_switches_and_nobody_is_ended_for_it() -> None:
    registry = make_registry(quota=31)
    joined(registry, "near", [1], 8, priority=0)
    registry.place(registry.get("near"))
    job = joined(registry, "j", [1, 3], 8, priority=5)
    says = "8 of 31 slots in use, and this needs 24 more: 8 on each of 3 switches, "
    for call in (registry.place, registry.victims_of):
        with pytest.raises(NoRoomError, match=says):
            call(job)


def test_a_range_that_is_taken_on_one_switch_is_claimed_on_none() -> None:
    registry = make_registry()
    former = make_registry()
    job = joined(former, "j", [1, 3], 8)
    former.place(job)
    job.mapping.memory = {"leaf1": SlotRange(0, 8, 8), "leaf3": SlotRange(0, 8, 8)}
    registry.switches["leaf3"].memory.claim(SlotRange(0, 4, 4))
    with pytest.raises(NoRoomError, match="are in use already"):
        registry.adopt(job)
    assert used(registry) == {"leaf1": 0, "leaf2": 0, "leaf3": 4, "spine": 0}
