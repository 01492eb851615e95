"""Changes of running jobs' mappings: two beside one another, then the new one alone, or the old."""

from __future__ import annotations

import asyncio

import pytest

from ina.controller.change import Stage, Word
from ina.controller.errors import JobConflictError, NoRoomError, UnknownJobError
from ina.controller.job import Job, JobSpec, JobState
from ina.controller.jobs.changes import DECIDE_S
from ina.p4 import names
from ina.protocol.spec import Kind
from ina.tables.errors import SwitchError
from ina.tables.values import Entry
from ina.trees.errors import JobRequestError
from tests.worlds.fakes.changing import (
    LEAF1,
    OVER_SPINE,
    S,
    ask,
    ask_all,
    change_wholly,
    decide,
    epochs_on,
    finish,
    resized,
    told_of,
)
from tests.worlds.fakes.racks import JOB_SLOTS, NAMES, SLOTS, Racks

pytestmark = pytest.mark.usefixtures("quick_retries")

ALL = (1, 1, 2, 2)
ONE = ("leaf1",)


def members_on(racks: Racks, switch: str) -> int:
    """Rows that let workers in."""
    return sum(
        isinstance(item, Entry)
        and item.table == names.MEMBERS
        and dict(item.match)["kind"] == Kind.CONTRIBUTION
        for item in racks.sessions[switch].of_jobs()
    )


@pytest.mark.parametrize("slots", [2 * JOB_SLOTS, JOB_SLOTS // 4])
@pytest.mark.parametrize("leaves", [ALL, (1, 1)])
async def test_both_mappings_are_there_until_all_are_done(
    leaves: tuple[int, ...], slots: int
) -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run("j", leaves)
    here = list(job.memory)
    first, was = job.epoch, dict(job.memory)
    await resized(racks, job, slots)
    assert (job.slots, job.window) == (JOB_SLOTS, JOB_SLOTS // 2)
    for name in here:
        assert epochs_on(racks, name, job) == [first, first + 1]
        assert racks.used()[name] == JOB_SLOTS + slots
    rows = members_on(racks, "leaf1")
    racks.assert_agrees()
    told = decide(racks, job)
    assert (told.mapping.slots, told.mapping.window) == (slots, slots // 2)
    *others, last = job.members
    finish(racks, job, first + 1, others)
    await racks.until_idle()
    assert job.change is not None
    assert job.change.stage is Stage.DECIDED
    assert {name: epochs_on(racks, name, job)[0] for name in here} == dict.fromkeys(here, first)
    finish(racks, job, first + 1, [last])
    await racks.until_idle()
    assert len(job.mappings) == 1
    assert (job.epoch, job.mapping.epoch) == (first, first + 1)
    assert (job.slots, job.window, job.first_operation) == (slots, slots // 2, S)
    for name in here:
        assert epochs_on(racks, name, job) == [first + 1]
        assert racks.used()[name] == slots
        assert job.memory[name] != was[name]
    assert members_on(racks, "leaf1") == rows // 2
    racks.assert_agrees()
    assert [line.partition(" ")[0] for line in told_of(racks)] == [
        *["JOB_REMAPS"] * 2,
        "JOB_REMAPPED",
    ]
    # Whoever has missed that it is over is told what he needs, and nobody else anything.
    late = ask(racks, job, 1, Word(first + 1))
    assert late is not None
    assert (late.mapping.epoch, late.terms.first_operation, late.terms.waits) == (
        first + 1,
        S,
        False,
    )
    assert ask(racks, job, 1) is None
    await asyncio.gather(*racks.leave_all(job))
    await racks.until_idle()
    assert set(racks.used().values()) == {0}
    assert [session.of_jobs() for session in racks.sessions.values()] == [[], [], []]


async def test_many_in_a_row_and_back() -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run()
    for turn, slots in enumerate((32, 4, 16, 2, 64 - 2 - 2, 16)):
        await resized(racks, job, slots)
        await change_wholly(racks, job, S + turn)
        assert (job.slots, job.first_operation) == (slots, S + turn)
        assert racks.used() == dict.fromkeys(NAMES, slots)
        racks.assert_agrees()
        stored = racks.store.load(0.0)[0].job
        assert (stored.mapping.epoch, stored.memory) == (job.mapping.epoch, job.memory)
        assert (stored.window, stored.first_operation) == (job.window, S + turn)


async def test_a_move_takes_other_slots_or_says_that_there_are_none() -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run("j", (1, 1))
    was = job.memory["leaf1"]
    await racks.coordinator.changes.change(job, why="a test")
    await change_wholly(racks, job)
    assert job.memory["leaf1"] not in (was, None)
    assert job.memory["leaf1"].slots == was.slots
    await racks.run("other", (1,), slots=SLOTS - JOB_SLOTS - 16)
    memory = racks.registry.switches["leaf1"].memory
    memory.take_range("another", 16)
    with pytest.raises(NoRoomError, match="job 'j': no other 16 slots are free to move it to"):
        await racks.coordinator.changes.change(job, why="a test")
    assert memory.used() == SLOTS
    assert job.change is None


async def test_rank_0_hears_of_it_when_all_others_have_asked() -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run()
    await resized(racks, job, 32)
    assert ask(racks, job, 0) is None
    for rank in (3, 1):
        told = ask(racks, job, rank)
        assert told is not None
        assert (told.terms.first_operation, told.terms.waits) == (0, False)
        assert ask(racks, job, 0) is None
    before = len(told_of(racks))
    ask(racks, job, 2)
    assert told_of(racks)[before:] == ["JOB_REMAPS rank 0 is asked from which operation on"]
    assert ask(racks, job, 0) is not None
    assert len(told_of(racks)) == before + 1


async def test_what_a_rank_cannot_say_is_refused_in_one_line() -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run()
    await resized(racks, job, 32)
    epoch = ask_all(racks, job).mapping.epoch
    with pytest.raises(JobRequestError, match="rank 2: rank 0 alone says when to change"):
        ask(racks, job, 2, Word(epoch, S))
    with pytest.raises(JobRequestError, match="rank 1: is done with operations before one"):
        ask(racks, job, 1, Word(epoch, done=True))
    assert job.change is not None
    assert job.change.stage is Stage.ASKED
    for _ in range(2):  # it may say it again
        ask(racks, job, 0, Word(epoch, S))
    with pytest.raises(JobRequestError, match="operation 18: it has said 17 before"):
        ask(racks, job, 0, Word(epoch, S + 1))
    assert ask(racks, job, 0, Word(epoch, declined=True)) is not None  # too late
    assert ask(racks, job, 0, Word(epoch + 9, S + 5)) is not None  # of another one
    assert job.change.first_operation == S


@pytest.mark.parametrize("slots", [0, 7, SLOTS + 2, 1 << 31])
async def test_a_number_that_no_switch_can_have_is_refused(slots: int) -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run()
    last = racks.registry.epochs.last
    with pytest.raises(JobRequestError, match=f"job 'j': {slots} slots: .*2"):
        await resized(racks, job, slots)
    assert racks.used() == dict.fromkeys(NAMES, JOB_SLOTS)
    assert (job.change, racks.registry.epochs.last) == (None, last)


async def test_a_job_that_cannot_change_now_says_why() -> None:
    racks = Racks()
    await racks.start()
    with pytest.raises(UnknownJobError, match="no job is called 'j'"):
        await racks.coordinator.changes.resize("j", 4, "a test")
    await racks.coordinator.create(JobSpec("j", 2), 0.0)
    with pytest.raises(JobConflictError, match="job 'j' does not run: it is joining"):
        await racks.coordinator.changes.resize("j", 4, "a test")
    job = await racks.run("k")
    with pytest.raises(JobConflictError, match="job 'k' has 16 slots already"):
        await resized(racks, job, JOB_SLOTS)
    await resized(racks, job, 4)
    with pytest.raises(JobConflictError, match=r"job 'k' changes already: to 4 slots \(asked\)"):
        await resized(racks, job, 8)
    await racks.coordinator.leave("k", 3, job.epoch)
    with pytest.raises(JobConflictError, match="job 'k' does not run: it is leaving"):
        await resized(racks, job, 8)


async def _decline(racks: Racks, job: Job) -> None:
    epoch = ask_all(racks, job).mapping.epoch
    assert ask(racks, job, 0, Word(epoch, declined=True, reason="it closes")) is None


async def _decline_another(racks: Racks, job: Job) -> None:
    told = ask(racks, job, 2)
    assert told is not None
    ask(racks, job, 2, Word(told.mapping.epoch, declined=True))


async def _leave(racks: Racks, job: Job) -> None:
    await racks.coordinator.leave("j", 1, job.epoch)


async def _wait(racks: Racks, job: Job) -> None:
    assert job.change is not None
    ask(racks, job, 1)
    job.change.since_s -= DECIDE_S
    racks.coordinator.jobs()


async def _wait_for_rank_0(racks: Racks, job: Job) -> None:
    assert job.change is not None
    ask_all(racks, job)
    job.change.since_s -= DECIDE_S
    racks.coordinator.jobs()


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (_decline, "rank 0 declines: it closes"),
        (_decline_another, "rank 2 declines"),
        (_leave, "rank 1 has left"),
        (_wait, "ranks 2, 3 have not asked for it in 15 s"),
        (_wait_for_rank_0, "rank 0 has not said when in 15 s"),
    ],
)
async def test_it_is_called_off_before_rank_0_has_said_when(what, why: str) -> None:  # type: ignore[no-untyped-def]
    racks = Racks()
    await racks.start()
    job = await racks.run()
    first, was = job.epoch, dict(job.memory)
    await resized(racks, job, 32)
    await what(racks, job)
    assert racks.coordinator.changes.epoch_to(job, 0) == 0
    await racks.until_idle()
    assert (job.change, job.memory, job.mapping.epoch) == (None, was, first)
    assert racks.used() == dict.fromkeys(NAMES, JOB_SLOTS)
    for name in NAMES:
        assert epochs_on(racks, name, job) == [first]
    racks.assert_agrees()
    assert told_of(racks)[-1] == (
        "JOB_REMAP_OFF to 32 slots, 16..47 of spine, 16..47 of leaf1, 16..47 of leaf2, window"
        f" 16: {why}"
    )
    # Rank 0's word comes too late, and means nothing.
    assert ask(racks, job, 0, Word(first + 1, S)) is None
    assert racks.store.load(0.0)[0].job.change is None


@pytest.mark.parametrize("away", NAMES)
async def test_a_switch_that_does_not_take_it_calls_it_off(away: str) -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run()
    racks.sessions[away].lost = True
    with pytest.raises(SwitchError, match="no answer"):
        await resized(racks, job, 32)
    assert racks.used()[away] == JOB_SLOTS + 32  # it may have something of it
    racks.sessions[away].lost = False
    await racks.reconcile(away)
    await racks.until_idle()
    assert (job.change, job.state) == (None, JobState.RUNNING)
    assert racks.used() == dict.fromkeys(NAMES, JOB_SLOTS)
    racks.assert_agrees()
    assert all(line.startswith("JOB_REMAP_OFF") for line in told_of(racks))


@pytest.mark.parametrize("away", NAMES)
async def test_slots_are_free_where_the_switch_has_said_so(away: str) -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run()
    await resized(racks, job, 32)
    epoch = decide(racks, job).mapping.epoch
    racks.sessions[away].lost = True
    finish(racks, job, epoch)
    there = [name for name in NAMES if name != away]
    while any(racks.used()[name] != 32 for name in there):
        await asyncio.sleep(0)
    assert racks.used()[away] == JOB_SLOTS + 32
    assert (job.slots, job.change is None) == (32, False)
    racks.sessions[away].lost = False
    await racks.reconcile(away)
    await racks.until_idle()
    assert job.change is None
    assert racks.used() == dict.fromkeys(NAMES, 32)
    racks.assert_agrees()


@pytest.mark.parametrize("slots", [60, 16])
async def test_without_room_for_both_all_wait_until_the_former_one_is_gone(slots: int) -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run("j", (1, 1), slots=24)
    if slots < 24:
        racks.registry.switches["leaf1"].memory.take_range("other", SLOTS - 24)
    await resized(racks, job, slots)
    assert job.change is not None
    assert job.change.in_place
    told = decide(racks, job)
    assert told.terms.waits
    epoch = told.mapping.epoch
    finish(racks, job, epoch, [0])
    await racks.until_idle()
    again = ask(racks, job, 0, Word(epoch))
    assert again is not None
    assert again.terms.waits  # rank 1 still needs its slots
    assert epochs_on(racks, "leaf1", job) == [job.epoch, epoch]
    racks.sessions["leaf1"].gate.clear()
    finish(racks, job, epoch, [1])
    for _ in range(9):
        await asyncio.sleep(0)
    again = ask(racks, job, 1, Word(epoch))
    assert again is not None
    assert again.terms.waits  # the former one may still let packets in
    racks.sessions["leaf1"].gate.set()
    await racks.until_idle()
    assert epochs_on(racks, "leaf1", job) == [epoch]
    assert told_of(racks)[-1] == "JOB_REMAPS the former slots are free: ranks may begin"
    assert racks.coordinator.changes.epoch_to(job, 1) == epoch
    opened = ask(racks, job, 1, Word(epoch))
    assert opened is not None
    assert not opened.terms.waits
    assert [racks.coordinator.changes.epoch_to(job, rank) for rank in (0, 1)] == [epoch, 0]
    ask(racks, job, 0, Word(epoch))
    assert ask(racks, job, 1) is None
    again = ask(racks, job, 0, Word(epoch))  # the answer was lost
    assert again is not None
    assert len(job.mappings) == 2  # rank 0 may not have heard of it
    assert ask(racks, job, 0) is None
    assert len(job.mappings) == 1
    assert told_of(racks)[-1].startswith("JOB_REMAPPED ")
    others = SLOTS - 24 if slots < 24 else 0
    assert racks.used()["leaf1"] == slots + others
    racks.assert_agrees()


async def test_a_job_gets_another_tree_and_the_former_one_back() -> None:
    racks = Racks()
    await racks.start()
    job = await racks.run("j", (1, 1))
    assert job.forest == LEAF1
    number, changes = job.number, racks.coordinator.changes
    await changes.change(job, forest=OVER_SPINE, why="a test")
    told = decide(racks, job)
    assert told.mapping.numbers[0] != number
    assert (epochs_on(racks, "spine", job), len(epochs_on(racks, "leaf1", job))) == (
        [told.mapping.epoch],
        2,
    )
    finish(racks, job, told.mapping.epoch)
    await racks.until_idle()
    assert (job.forest, job.switch, job.number) == (OVER_SPINE, "spine", number)
    assert racks.used() == {"leaf1": JOB_SLOTS, "leaf2": 0, "spine": JOB_SLOTS}
    assert racks.sessions["leaf1"].rows_of(number) == []
    # A restart finds it there, and its numbers are not handed out.
    await racks.start()
    job = racks.registry.get("j")
    assert job.forest == OVER_SPINE
    other = await racks.run("other", (2,))
    assert other.numbers[0] not in job.numbers
    await racks.coordinator.changes.change(job, forest=LEAF1, slots=8, why="a test")
    await change_wholly(racks, job, S + 1)
    assert (job.forest, job.slots, job.mapping.numbers[0]) == (LEAF1, 8, number)
    assert racks.sessions["spine"].of_jobs() == []
    assert len(job.numbers) == 1
    assert racks.used() == {"leaf1": 8, "leaf2": JOB_SLOTS, "spine": 0}
    await asyncio.gather(*racks.leave_all(job), *racks.leave_all(other))
    await racks.until_idle()
    assert set(racks.used().values()) == {0}
