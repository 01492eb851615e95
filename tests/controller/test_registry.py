"""The registry alone: who is admitted, who is refused, and that everything comes back."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ina.controller.errors import JobConflictError, NoRoomError, UnknownJobError
from ina.controller.job import TRANSITIONS, JobEvent, JobSpec, JobState
from ina.protocol import serial
from ina.trees.errors import JobRequestError
from tests.selection import examples
from tests.worlds.fakes.registries import endpoint, make_registry, run_job
from tests.worlds.fakes.switches import memory_of


@pytest.mark.parametrize("world_size", [0, 33])
def test_world_size_is_1_to_32(world_size: int) -> None:
    with pytest.raises(JobRequestError, match=f"{world_size} workers: one switch sums 1 to 32"):
        make_registry().create(JobSpec("j", world_size), 0.0)


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb"])
def test_names_are_printable(name: str) -> None:
    with pytest.raises(JobRequestError, match="job name"):
        make_registry().create(JobSpec(name, 2), 0.0)


def test_a_name_has_one_size() -> None:
    registry = make_registry()
    job = registry.create(JobSpec("j", 2), 0.0)
    assert registry.create(JobSpec("j", 2), 1.0) is job
    with pytest.raises(JobConflictError, match="created with 2 workers, not 3"):
        registry.create(JobSpec("j", 3), 0.0)


def test_a_rank_joins_once_from_its_own_address() -> None:
    registry = make_registry()
    registry.create(JobSpec("j", 3), 0.0)
    registry.join("j", 0, endpoint(1))
    with pytest.raises(JobConflictError, match=r"rank 0 has joined already, from 10.0.0.1:1"):
        registry.join("j", 0, endpoint(2))
    with pytest.raises(JobConflictError, match="rank 1 has the address of rank 0"):
        registry.join("j", 1, endpoint(1))
    with pytest.raises(JobRequestError, match="ranks 0 to 2, not 3"):
        registry.join("j", 3, endpoint(3))
    with pytest.raises(UnknownJobError, match="'other'"):
        registry.join("other", 0, endpoint(3))


def test_slots_and_numbers_run_out_with_the_reason() -> None:
    registry = make_registry(slots=64, job_slots=16)
    for name in "abcd":
        registry.create(JobSpec(name, 1), 0.0)
    with pytest.raises(NoRoomError, match="all 4 ranges of 16 slots are in use"):
        registry.create(JobSpec("e", 1), 0.0)
    few_numbers = make_registry(numbers=1)
    few_numbers.create(JobSpec("a", 1), 0.0)
    with pytest.raises(NoRoomError, match="all 1 job numbers"):
        few_numbers.create(JobSpec("b", 1), 0.0)


def test_a_running_job_can_be_neither_created_nor_joined_again() -> None:
    registry = make_registry()
    run_job(registry, "j", 2)
    with pytest.raises(
        JobConflictError, match=r"in use: it is running \(epoch 1, ranks here: 0, 1"
    ):
        registry.create(JobSpec("j", 2), 0.0)
    with pytest.raises(JobConflictError, match="rank 1 has joined already"):
        registry.join("j", 1, endpoint(7))


def test_the_last_worker_frees_the_job_and_its_name_gets_a_new_epoch() -> None:
    registry = make_registry()
    first = run_job(registry, "j", 2)
    assert registry.leave("j", 0, first.epoch) is first
    assert first.state is JobState.LEAVING
    with pytest.raises(JobConflictError, match="in use"):
        registry.create(JobSpec("j", 2), 0.0)
    assert registry.leave("j", 1, first.epoch) is first
    registry.removed(first)
    assert registry.slots_used() == 0
    second = run_job(registry, "j", 2)
    assert serial.is_newer(second.epoch, first.epoch)
    assert second.number != first.number


def test_a_late_leave_of_a_former_incarnation_changes_nothing() -> None:
    registry = make_registry()
    first = run_job(registry, "j", 1)
    registry.leave("j", 0, first.epoch)
    registry.removed(first)
    second = run_job(registry, "j", 1)
    assert registry.leave("j", 0, first.epoch) is None
    assert list(second.members) == [0]
    assert registry.leave("j", 5, second.epoch) is None
    assert registry.leave("other", 0, 1) is None


def test_a_job_that_nobody_joins_expires() -> None:
    registry = make_registry()
    registry.create(JobSpec("idle", 2), 100.0)
    registry.create(JobSpec("waiting", 2), 100.0)
    registry.join("waiting", 0, endpoint(1))
    registry.expire(159.0)
    assert len(registry) == 2
    registry.expire(160.0)
    assert [job.name for job in registry] == ["waiting"]


def test_every_state_but_the_last_has_a_way_out() -> None:
    assert {state for state, _ in TRANSITIONS} == set(JobState) - {JobState.GONE}
    assert {event for _, event in TRANSITIONS} == set(JobEvent)


class Jobs(RuleBasedStateMachine):
    """Random creates, joins, leaves and failures: jobs never share slots, numbers or epochs."""

    names = st.sampled_from("abcdef")

    def __init__(self) -> None:
        super().__init__()
        self.registry = make_registry(numbers=5)
        self.last_epoch = 0
        self.port = 0

    @rule(name=names, world_size=st.integers(1, 3))
    def create(self, name: str, world_size: int) -> None:
        try:
            self.registry.create(JobSpec(name, world_size), 0.0)
        except (JobConflictError, NoRoomError):
            return

    @rule(name=names, rank=st.integers(0, 2))
    def join(self, name: str, rank: int) -> None:
        self.port += 1
        try:
            job = self.registry.join(name, rank, endpoint(self.port))
        except (JobConflictError, JobRequestError, UnknownJobError):
            return
        if not job.missing():
            self.registry.place(job)
            assert serial.is_newer(job.epoch, self.last_epoch)
            self.last_epoch = job.epoch

    @rule(name=names, works=st.booleans())
    def switch_answers(self, name: str, works: bool) -> None:
        for job in self.registry:
            if job.name == name and job.state is JobState.STARTING:
                if works:
                    self.registry.installed(job)
                else:
                    self.registry.failed(job)
                    self.registry.removed(job)

    @rule(name=names, rank=st.integers(0, 2))
    def leave(self, name: str, rank: int) -> None:
        for job in self.registry:
            left = job.name == name and self.registry.leave(name, rank, job.epoch) is job
            if left and not job.members:
                self.registry.removed(job)

    @rule(name=names, removed=st.booleans())
    def end(self, name: str, removed: bool) -> None:
        """Evicted, or a worker lost; the switch may take its time."""
        for job in self.registry:
            if job.name == name and job.state in (JobState.RUNNING, JobState.LEAVING):
                if job.members:
                    self.registry.end(job)
                if removed:
                    self.registry.removed(job)

    @rule(name=names)
    def give_up(self, name: str) -> None:
        for job in self.registry:
            if job.name == name and job.state is JobState.JOINING:
                self.registry.abandon(job)

    @invariant()
    def nothing_is_shared_or_lost(self) -> None:
        jobs = list(self.registry)
        assert len({job.number for job in jobs}) == len(jobs)
        assert len({memory_of(job).first for job in jobs}) == len(jobs)
        assert self.registry.slots_used() == 16 * len(jobs)


TestJobs = Jobs.TestCase
TestJobs.settings = settings(max_examples=examples(100))
