"""What ends in the middle of a change: the job, a rank, a switch's registers, the controller."""

from __future__ import annotations

import asyncio

import pytest

from ina.controller.change import Stage, Word
from ina.controller.job import Job, JobState
from ina.rpc import controller_pb2 as pb2
from ina.trees.slots import SlotRange
from tests.worlds.fakes.changing import (
    LEAF1,
    OVER_SPINE,
    S,
    ask,
    ask_all,
    change_wholly,
    decide,
    finish,
    resized,
    told_of,
)
from tests.worlds.fakes.racks import JOB_SLOTS, NAMES, Racks

pytestmark = pytest.mark.usefixtures("quick_retries")


STAGES = [Stage.ASKED, Stage.DECIDED, Stage.CLEARING, Stage.OPENED]


async def reach(racks: Racks, job: Job, stage: Stage) -> None:
    """Brings a change to the stage, and no further while ``leaf1`` does not write."""
    in_place = stage is Stage.OPENED
    await resized(racks, job, 60 if in_place else 32)
    if stage is Stage.ASKED:
        ask_all(racks, job)
        return
    epoch = decide(racks, job).mapping.epoch
    if stage is Stage.DECIDED:
        finish(racks, job, epoch, [1])
        return
    if stage is Stage.CLEARING:
        racks.sessions["leaf1"].gate.clear()
    finish(racks, job, epoch)
    while job.change is None or job.change.stage is not stage:
        await asyncio.sleep(0)


@pytest.mark.parametrize("stage", STAGES)
async def test_a_job_that_is_evicted_frees_all_of_both(stage: Stage) -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run()
    await reach(racks, job, stage)
    evicting = asyncio.create_task(racks.coordinator.evict("j", "a test"))
    await asyncio.sleep(0)
    racks.sessions["leaf1"].gate.set()
    await evicting
    await racks.until_idle()
    assert set(racks.used().values()) == {0}
    assert [session.of_jobs() for session in racks.sessions.values()] == [[], [], []]
    assert racks.store.load(0.0) == []
    job = await racks.run()
    assert job.number == 2


@pytest.mark.parametrize("stage", STAGES)
async def test_ranks_that_leave_are_waited_for_no_more(stage: Stage) -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run()
    await reach(racks, job, stage)
    racks.sessions["leaf1"].gate.set()
    for rank in (3, 0, 2):
        await racks.coordinator.leave("j", rank, job.epoch)
        await racks.until_idle()
        racks.assert_agrees()
    if stage is Stage.OPENED:
        assert job.change is not None
        assert ask(racks, job, 1, Word(job.mapping.epoch)) is not None
        ask(racks, job, 1)
    assert (job.change, job.slots) == (
        None,
        {Stage.ASKED: JOB_SLOTS, Stage.OPENED: 60}.get(stage, 32),
    )
    racks.assert_agrees()
    await racks.coordinator.leave("j", 1, job.epoch)
    await racks.until_idle()
    assert set(racks.used().values()) == {0}
    assert [session.of_jobs() for session in racks.sessions.values()] == [[], [], []]


@pytest.mark.parametrize("reboots", NAMES)
@pytest.mark.parametrize("stage", STAGES)
async def test_a_switch_that_loses_its_registers_ends_the_job(stage: Stage, reboots: str) -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run()
    await reach(racks, job, stage)
    racks.sessions["leaf1"].gate.set()
    racks.sessions[reboots].restart()
    racks.sessions[reboots].lost = False
    await racks.reconcile(reboots, fresh=True)
    await racks.until_idle()
    assert job.state is JobState.GONE
    assert racks.coordinator.events.history("j")[-2].kind == pb2.SWITCH_LOST
    assert set(racks.used().values()) == {0}
    assert [session.of_jobs() for session in racks.sessions.values()] == [[], [], []]


async def test_a_switch_of_the_new_tree_alone_is_no_loss_before_it_is_decided() -> None:
    for decided in (False, True):
        racks = Racks()
        await racks.start()
        job = await racks.run("j", (1, 1))
        await racks.coordinator.changes.change(job, forest=OVER_SPINE, why="a test")
        if decided:
            decide(racks, job)
        racks.sessions["spine"].restart()
        racks.sessions["spine"].lost = False
        await racks.reconcile("spine", fresh=True)
        await racks.until_idle()
        assert job.state is (JobState.GONE if decided else JobState.RUNNING)
        assert racks.used()["spine"] == 0
        if not decided:
            assert told_of(racks)[-1].endswith(": switch 'spine' has lost its registers")
            assert (job.change, job.forest) == (None, LEAF1)
            racks.assert_agrees()


@pytest.mark.parametrize("stage", STAGES)
async def test_a_controller_that_starts_goes_on_from_any_stage(stage: Stage) -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run()
    await reach(racks, job, stage)
    slots = 60 if stage is Stage.OPENED else 32
    closing = asyncio.create_task(racks.coordinator.close())
    await asyncio.sleep(0)
    racks.sessions["leaf1"].gate.set()
    await closing
    await racks.start()
    job = racks.registry.get("j")
    to = racks.coordinator.changes.epoch_to(job, 1)
    assert to == (job.epoch + 1 if job.change else 0)
    if stage is Stage.ASKED:
        await change_wholly(racks, job)
    elif stage is Stage.DECIDED:
        assert ask(racks, job, 0, Word(job.epoch + 1, S)) is not None
        finish(racks, job, job.epoch + 1)  # rank 1 says it again
    elif stage is Stage.OPENED:
        for rank in range(4):
            assert ask(racks, job, rank, Word(job.epoch + 1)) is not None
            assert ask(racks, job, rank) is None
    await racks.until_idle()
    assert (job.change, job.slots, job.first_operation) == (None, slots, S)
    assert racks.used() == dict.fromkeys(NAMES, slots)
    racks.assert_agrees()
    assert job.memory["leaf1"] == SlotRange(job.memory["leaf1"].first, slots, slots)
