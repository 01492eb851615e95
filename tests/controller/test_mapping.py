"""A change of a job's mapping as a table of stages; what it takes, and gives back."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ina.controller.change import TRANSITIONS, Change, Stage, Step
from ina.controller.config import TenantConfig
from ina.controller.errors import NoRoomError
from ina.controller.job import Job, JobSpec
from ina.controller.jobs import remapping
from ina.controller.jobs.admission import Admission, usage
from ina.controller.jobs.numbers import EpochCounter
from ina.controller.jobs.registry import Registry
from ina.controller.memory import FirstFit
from ina.protocol.peer import Peer
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError
from ina.trees.slots import SlotRange
from tests.worlds.fakes.switches import NAME, alone

SLOTS = 64


def running(registry: Registry, slots: int = 16, ranks: int = 2) -> Job:
    registry.create(JobSpec("j", ranks, slots), 0.0)
    for rank in range(ranks):
        job = registry.join("j", rank, Endpoint(Peer(IPv4Address("10.0.0.1"), 4000 + rank), 1))
    registry.place(job)
    registry.installed(job)
    return job


def registry_with(last_epoch: int = 0, quota: int = 0) -> Registry:
    return Registry(
        alone(FirstFit(SLOTS, 16)),
        EpochCounter(last_epoch),
        range(1, 9),
        admission=Admission({"default": TenantConfig(slots=quota)}),
    )


def decided(first_operation: int = 9) -> Change:
    registry = registry_with()
    change = remapping.begin(registry, running(registry), 32, None, "a test")
    change.on(Step.INSTALLED)
    assert change.decide("j", first_operation)
    return change


def test_every_stage_but_the_last_leads_on_and_every_step_is_one() -> None:
    assert {stage for stage, _ in TRANSITIONS} == set(Stage) - {Stage.OVER}
    assert {step for _, step in TRANSITIONS} == set(Step)
    assert set(TRANSITIONS.values()) == set(Stage) - {Stage.INSTALLING}


def test_what_is_decided_cannot_be_called_off() -> None:
    off = {stage for (stage, step) in TRANSITIONS if step is Step.CALLED_OFF}
    assert off == {Stage.INSTALLING, Stage.ASKED}
    change = decided()
    assert not change.is_undecided
    with pytest.raises(KeyError):
        change.on(Step.CALLED_OFF)


def test_rank_0_says_the_same_again_and_nothing_else() -> None:
    change = decided(9)
    assert not change.decide("j", 9)
    with pytest.raises(JobRequestError, match="changes at operation 8: it has said 9 before"):
        change.decide("j", 8)
    change.finish("j", 1)
    change.finish("j", 1)
    assert (change.not_done([0, 1, 2]), change.not_done([1])) == ([0, 2], [])


def test_while_it_changes_both_ranges_count_and_then_one() -> None:
    registry = registry_with()
    job = running(registry)
    change = remapping.begin(registry, job, 32, None, "a test")
    assert usage([job]).slots == registry.slots_used() == 48
    assert [it.epoch for it in job.mappings] == [1, 2]
    change.on(Step.INSTALLED)
    change.decide("j", 5)
    remapping.turn(job)
    assert (job.epoch, job.mapping.epoch, job.slots, job.window) == (1, 2, 32, 16)
    assert [it.epoch for it in job.mappings] == [1, 2]
    assert registry.slots_used() == 48
    change.on(Step.REMOVED)
    remapping.end(registry, job)
    assert (usage([job]).slots, registry.slots_used()) == (32, 32)
    assert (job.change, job.first_operation) == (None, 5)
    registry.end(job)
    registry.removed(job)
    assert registry.slots_used() == 0


@given(st.integers(2, SLOTS // 2), st.integers(2, SLOTS // 2), st.booleans())
def test_slots_are_shared_only_where_there_is_no_room_beside(
    had: int, wants: int, called_off: bool
) -> None:
    had, wants = 2 * (had // 2), 2 * (wants // 2)
    registry = registry_with()
    job = running(registry, had)
    rest = SLOTS - had - SLOTS // 4
    registry.switches[NAME].memory.claim(SlotRange(SLOTS - rest, rest, rest))
    if wants > had + SLOTS // 4:
        with pytest.raises(NoRoomError, match=f"no {wants} free slots are side by side"):
            remapping.begin(registry, job, wants, None, "a test")
        return
    if wants == had > SLOTS // 4:
        with pytest.raises(NoRoomError, match="are free to move it to"):
            remapping.begin(registry, job, wants, None, "a test")
        return
    former = job.memory[NAME]
    change = remapping.begin(registry, job, wants, None, "a test")
    new = change.other.memory[NAME]
    overlap = range(max(new.first, former.first), min(new.end, former.end))
    assert change.in_place == (wants > SLOTS // 4) == (len(overlap) > 0)
    assert registry.slots_used() == rest + had + wants - len(overlap)
    if called_off:
        change.on(Step.CALLED_OFF)
    else:
        change.on(Step.INSTALLED)
        change.decide("j", 1)
        remapping.turn(job)
    remapping.end(registry, job)
    assert job.memory == {NAME: former if called_off else new}
    assert registry.slots_used() == rest + job.memory[NAME].slots


def test_the_quota_is_asked_for_what_it_will_have_and_nothing_is_taken() -> None:
    registry = registry_with(quota=32)
    job = running(registry)
    last = registry.epochs.last
    with pytest.raises(NoRoomError, match="quota of tenant 'default': 0 of 32 slots in use"):
        remapping.begin(registry, job, 34, None, "a test")
    assert (registry.slots_used(), job.change, registry.epochs.last) == (16, None, last)
    remapping.begin(registry, job, 32, None, "a test")


def test_the_epochs_of_two_mappings_differ_in_what_packets_carry_of_them() -> None:
    registry = registry_with()
    job = running(registry)
    registry.epochs.last = job.epoch + 0xFFFF
    change = remapping.begin(registry, job, 32, None, "a test")
    assert change.other.epoch == job.epoch + 0x10001


def test_another_job_gets_nothing_of_either() -> None:
    registry = registry_with()
    job = running(registry)
    remapping.begin(registry, job, 40, None, "a test")
    with pytest.raises(NoRoomError, match="56 of 64 are in use"):
        registry.create(JobSpec("k", 1, 10), 0.0)
    assert registry.create(JobSpec("k", 1, 8), 0.0).slots == 8
