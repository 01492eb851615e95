"""Jobs of mode shared change while they run: other slots, the other mode, and back."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from ina.controller.change import Stage, Word
from ina.controller.config import TenantConfig
from ina.controller.errors import JobConflictError, NoRoomError
from ina.controller.job import Job, JobSpec, JobState
from ina.p4 import names
from ina.protocol.peer import Peer
from ina.tables.values import Entry
from ina.trees.errors import JobRequestError
from ina.trees.tree import HostNode
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
from tests.worlds.fakes.racks import AGGREGATOR, AGGREGATORS, JOB_SLOTS, NAMES, SLOTS, Racks, host
from tests.worlds.loops import drive

pytestmark = pytest.mark.usefixtures("quick_retries")

LANES = JOB_SLOTS // 2


async def shared_racks(tenant: TenantConfig | None = None, *, aggregators: int = 1) -> Racks:
    racks = Racks(names.SHARED, aggregators=aggregators, tenant=tenant)
    await racks.start()
    return racks


def arcs(racks: Racks) -> dict[str, int]:
    """Shared slots that some job may claim, by switch."""
    of = {name: racks.registry.switches[name].shared for name in NAMES}
    return {name: 0 if it is None else it.used() for name, it in of.items()}


def owners_on(racks: Racks, switch: str) -> list[int]:
    """Epochs of which the switch knows where a sum goes that loses its slot."""
    return sorted(
        item.exact("epoch")
        for item in racks.sessions[switch].of_jobs()
        if isinstance(item, Entry) and item.table == names.OWNERS
    )


async def all_leave(racks: Racks, job: Job) -> None:
    """And nothing is left anywhere."""
    await asyncio.gather(*racks.leave_all(job))
    await racks.until_idle()
    assert racks.registry.slots_used() == 0
    assert [session.of_jobs() for session in racks.sessions.values()] == [[]] * len(racks.names)


@pytest.mark.parametrize("slots", [2 * JOB_SLOTS, JOB_SLOTS // 4])
async def test_a_resize_has_other_slots_at_the_aggregator_and_another_arc(slots: int) -> None:
    racks = await shared_racks()
    job = await racks.run("j", mode=names.SHARED)
    first, was = job.epoch, dict(job.memory)
    await resized(racks, job, slots)
    assert job.change is not None
    new = job.change.other
    assert (new.mode, new.forest, new.numbers) == (names.SHARED, job.forest, (job.number,))
    assert (new.slots, new.window) == (slots, slots // 2)
    assert new.memory[AGGREGATOR].first >= was[AGGREGATOR].end
    for name in NAMES:
        arc = new.memory[name]
        assert (arc.slots, arc.reserved) == (slots, slots // 2)
        assert was[name].end <= arc.first  # beside the former, as there is room
        assert arcs(racks)[name] == LANES + slots // 2
        assert owners_on(racks, name) == [first, first + 1]
    for name in racks.names:
        assert epochs_on(racks, name, job) == [first, first + 1]
    assert racks.used() == dict.fromkeys(NAMES, 0) | {AGGREGATOR: JOB_SLOTS + slots}
    racks.assert_agrees()
    await change_wholly(racks, job)
    assert (job.slots, job.window, job.mode) == (slots, slots // 2, names.SHARED)
    assert arcs(racks) == dict.fromkeys(NAMES, slots // 2)
    assert racks.used() == dict.fromkeys(NAMES, 0) | {AGGREGATOR: slots}
    for name in NAMES:
        assert owners_on(racks, name) == [first + 1]
    racks.assert_agrees()
    assert f"JOB_REMAPS to {slots} slots, " in told_of(racks)[0]
    await all_leave(racks, job)


async def test_without_room_at_the_aggregator_it_is_in_place_though_arcs_overlap_at_any_time() -> (
    None
):
    racks = await shared_racks()
    job = await racks.run("j", mode=names.SHARED, slots=32)
    other = await racks.run("k", mode=names.SHARED, slots=32)
    with pytest.raises(NoRoomError, match="no 64 free slots are side by side"):
        await resized(racks, job, 64)
    await asyncio.gather(*racks.leave_all(other))
    await racks.until_idle()
    # Room beside it, and arcs that together are more than all shared slots: no reason to wait.
    await resized(racks, job, 30)
    assert job.change is not None
    assert not job.change.in_place
    await change_wholly(racks, job)
    await resized(racks, job, 60)
    assert job.change is not None
    assert job.change.in_place
    await change_wholly(racks, job)
    assert (job.slots, job.window) == (60, 16)
    await all_leave(racks, job)


async def test_a_tenant_may_claim_by_the_new_mapping_what_its_quota_leaves() -> None:
    racks = await shared_racks(TenantConfig(slots=20))
    job = await racks.run("j", (1, 1), mode=names.SHARED)
    other = await racks.run("k", (1, 1), mode=names.SHARED, slots=8)
    assert [it.memory["leaf1"].reserved for it in (job, other)] == [8, 4]
    await resized(racks, job, 2 * SLOTS // 4)
    await change_wholly(racks, job)
    assert job.memory["leaf1"].reserved == 16  # as many as lanes, 20 - 4 left
    await resized(racks, other, 16)
    await change_wholly(racks, other)
    assert other.memory["leaf1"].reserved == 4  # not 8
    await resized(racks, job, 2)
    await change_wholly(racks, job)
    await resized(racks, other, 2 * JOB_SLOTS)
    await change_wholly(racks, other)
    assert other.memory["leaf1"].reserved == 16
    with pytest.raises(NoRoomError, match="quota of tenant 'default': 16 of 20 slots"):
        await racks.coordinator.changes.change(job, slots=8, mode=names.POOL, why="a test")


async def test_at_a_switch_that_is_the_aggregator_no_quota_holds_a_job_of_mode_shared() -> None:
    racks = await shared_racks(TenantConfig(slots=4))
    racks.registry.switches["leaf1"].is_aggregator = True
    job = await racks.run("j", (1, 1), mode=names.SHARED)
    assert list(job.memory) == ["leaf1"]
    assert job.slots == JOB_SLOTS
    assert racks.registry.admission.slots_left("default", racks.registry) == 4
    await resized(racks, job, 2 * JOB_SLOTS)
    await change_wholly(racks, job)
    assert job.slots == 2 * JOB_SLOTS
    with pytest.raises(NoRoomError, match="quota of tenant 'default': 0 of 4 slots"):
        await racks.coordinator.changes.change(job, slots=8, mode=names.POOL, why="a test")
    await all_leave(racks, job)


@pytest.mark.parametrize("leaves", [(1, 1, 2, 2), (1, 1)])
async def test_a_job_changes_its_mode_and_back(leaves: tuple[int, ...]) -> None:
    racks = await shared_racks()
    changes = racks.coordinator.changes
    job = await racks.run("j", leaves)
    bare, number = job.forest, job.number
    here = dict.fromkeys(job.memory, 0)
    first = job.epoch
    await changes.change(job, mode=names.SHARED, why="a test")
    assert job.mode == names.POOL
    told = decide(racks, job)
    assert (told.mapping.mode, told.mapping.slots) == (names.SHARED, JOB_SLOTS)
    assert told.mapping.numbers[0] != number
    for name in here:
        assert epochs_on(racks, name, job) == [first, told.mapping.epoch]
    racks.assert_agrees()
    finish(racks, job, told.mapping.epoch)
    await racks.until_idle()
    assert job.mode == names.SHARED
    assert job.forest is not None
    assert job.forest.root.switch == AGGREGATOR
    assert job.mapping.forest.trees[0].full_bitmap == (1 << len(leaves)) - 1
    assert {name: arcs(racks)[name] for name in here} == dict.fromkeys(here, LANES)
    assert racks.used() == dict.fromkeys(NAMES, 0) | {AGGREGATOR: JOB_SLOTS}
    assert f"JOB_REMAPS to mode shared, {JOB_SLOTS} slots, " in told_of(racks)[0]
    assert f"JOB_REMAPPED mode shared, {JOB_SLOTS} slots, " in told_of(racks)[-1]
    # The mode is in the store, and what makes its results.
    await racks.start()
    changes = racks.coordinator.changes
    job = racks.registry.get("j")
    assert (job.mode, job.forest.root.switch if job.forest else "") == (
        names.SHARED,
        AGGREGATOR,
    )
    racks.assert_agrees()
    await changes.change(job, mode=names.POOL, slots=2 * JOB_SLOTS, why="a test")
    await change_wholly(racks, job, S + 1)
    assert (job.forest, job.mode, job.slots) == (bare, names.POOL, 2 * JOB_SLOTS)
    assert job.mapping.numbers[0] == number
    assert arcs(racks) == dict.fromkeys(NAMES, 0)
    assert racks.used() == dict.fromkeys(racks.names, 0) | dict.fromkeys(here, 32)
    assert racks.sessions[AGGREGATOR].of_jobs() == []
    racks.assert_agrees()
    await all_leave(racks, job)


async def test_lanes_stay_dealt_among_two_aggregators() -> None:
    racks = await shared_racks(aggregators=2)
    changes = racks.coordinator.changes
    job = await racks.run("j", mode=names.SHARED)
    numbers = job.numbers
    assert len(numbers) == 2
    for slots in (2 * JOB_SLOTS, JOB_SLOTS // 4, 34):
        await resized(racks, job, slots)
        racks.assert_agrees()
        await change_wholly(racks, job)
        had = slots // 4 * 4  # as many at each, an even number
        assert (job.slots, job.numbers) == (had, numbers)
        assert racks.used() == dict.fromkeys(NAMES, 0) | dict.fromkeys(AGGREGATORS, had // 2)
        assert owners_on(racks, "leaf1") == []  # one epoch would be two rows
        racks.assert_agrees()
    await changes.change(job, mode=names.POOL, why="a test")
    await change_wholly(racks, job)
    assert len(job.mapping.numbers) == 1
    await changes.change(job, mode=names.SHARED, why="a test")
    racks.assert_agrees()
    await change_wholly(racks, job)
    assert len(job.mapping.numbers) == len(job.numbers) == 2
    await all_leave(racks, job)
    assert racks.registry.numbers.are_free(range(1, 9))


async def test_another_tree_has_the_aggregator_above_it_too() -> None:
    racks = await shared_racks()
    changes = racks.coordinator.changes
    job = await racks.run("j", (1, 1), mode=names.SHARED)
    await changes.change(job, forest=OVER_SPINE, why="a test")
    await change_wholly(racks, job)
    assert job.forest is not None
    assert [(it.switch, it.parent, it.is_shared) for it in job.forest.trees[0]] == [
        (AGGREGATOR, None, False),
        ("spine", AGGREGATOR, True),
        ("leaf1", "spine", True),
    ]
    await changes.change(job, forest=LEAF1, mode=names.POOL, why="a test")
    await change_wholly(racks, job)
    assert (job.forest, job.mode) == (LEAF1, names.POOL)
    await all_leave(racks, job)


async def test_below_a_root_that_is_an_aggregator_itself() -> None:
    racks = Racks(names.SHARED)
    await racks.start()
    racks.registry.switches["spine"].is_aggregator = True
    job = await racks.run("j")
    bare = job.forest
    for mode, shared in ((names.SHARED, [False, True, True]), (names.POOL, [False] * 3)):
        await racks.coordinator.changes.change(job, mode=mode, why="a test")
        await change_wholly(racks, job)
        assert job.forest is not None
        assert [(it.switch, it.is_shared) for it in job.forest.trees[0]] == list(
            zip(("spine", "leaf1", "leaf2"), shared, strict=True)
        )
        racks.assert_agrees()
    assert job.forest == bare
    await all_leave(racks, job)


async def test_a_change_that_cannot_be_is_refused_in_one_line_and_takes_nothing() -> None:
    racks = Racks(names.SHARED)
    await racks.start()
    job = await racks.run("j")
    changes, used = racks.coordinator.changes, racks.registry.slots_used()
    for error, match, asked in (
        (JobRequestError, "'shared' wants an aggregator.* rank 0 runs none", names.SHARED),
        (JobRequestError, "job 'j': no mode 'atp': use pool or shared", "atp"),
        (JobConflictError, "job 'j' has mode 'pool' already", names.POOL),
    ):
        with pytest.raises(error, match=match):
            await changes.resize("j", 0, "a test", mode=asked)
    with pytest.raises(JobConflictError, match="job 'j' has 16 slots already"):
        await changes.resize("j", JOB_SLOTS, "a test")
    racks.registry.switches["leaf1"].shared = None
    racks.registry.switches["leaf1"].program = names.POOL
    with pytest.raises(JobRequestError, match="switch 'leaf1' runs the program of mode 'pool'"):
        await changes.resize("j", 32, "a test", mode=names.SHARED)
    assert (racks.registry.slots_used(), len(job.mappings)) == (used, 1)
    await all_leave(racks, job)


def test_what_rank_0_runs_is_known_to_a_successor_though_the_job_does_not_need_it() -> None:
    runs = HostNode(0, Peer(host(1, 1), 4400, 0x020001020304), switch_port=1, uplink_port=1)

    async def scenario() -> None:
        racks = Racks(names.SHARED)
        await racks.start()
        await racks.coordinator.create(JobSpec("j", 2, mode=names.SHARED), 0.0)
        await asyncio.gather(
            *(
                racks.coordinator.join("j", rank, replace(at, aggregator=(runs, None)[rank]), 9.0)
                for rank, at in enumerate(await endpoints(racks))
            )
        )
        job = racks.registry.get("j")
        assert job.mapping.forest.root.host == runs
        for slots, first in ((32, JOB_SLOTS), (8, 0)):
            await resized(racks, job, slots)
            assert job.change is not None
            assert (job.change.other.host_first, job.change.in_place) == (first, False)
            await change_wholly(racks, job)
        with pytest.raises(JobRequestError, match="8194 slots: what sums on a host has 8192"):
            await resized(racks, job, 8194)
        await racks.coordinator.changes.change(job, mode=names.POOL, why="a test")
        await change_wholly(racks, job)
        assert (job.forest, job.mode) == (LEAF1, names.POOL)
        await racks.start()
        job = racks.registry.get("j")
        await racks.coordinator.changes.change(job, mode=names.SHARED, why="a test")
        await change_wholly(racks, job)
        assert job.mapping.forest.root.host == runs
        await all_leave(racks, job)

    async def endpoints(racks: Racks):  # type: ignore[no-untyped-def]
        other = await racks.run("k", (1, 1))
        found = [replace(it, peer=replace(it.peer, udp_port=4100)) for it in other.members.values()]
        await asyncio.gather(*racks.leave_all(other))
        await racks.until_idle()
        return found

    drive(scenario())


@pytest.mark.parametrize("stage", ["installed", "decided", "done"])
@pytest.mark.parametrize("switch", ["leaf1", AGGREGATOR])
@pytest.mark.parametrize("to", [names.POOL, names.SHARED])
async def test_a_switch_that_loses_its_registers_ends_it_only_if_they_are_needed(
    stage: str, switch: str, to: str
) -> None:
    """Of slots of its own, and where ranks send by the mapping that has them."""

    racks = await shared_racks()
    job = await racks.run("j", mode=names.SHARED if to == names.POOL else names.POOL)
    await racks.coordinator.changes.change(job, mode=to, why="a test")
    epoch = ask_all(racks, job).mapping.epoch
    if stage != "installed":
        ask(racks, job, 0, Word(epoch, S))
    turn = racks.coordinator.switches[switch].turn
    async with turn:
        again = asyncio.ensure_future(racks.reconcile(switch, fresh=True))
        await asyncio.sleep(0)  # it waits for its turn, before what takes entries off
        if stage == "done":
            finish(racks, job, epoch)
            assert job.change is not None
            assert (job.mode, job.change.stage) == (to, Stage.CLEARING)
    await again
    before, after = (AGGREGATOR, "leaf1") if to == names.POOL else ("leaf1", AGGREGATOR)
    goes_on = {
        "installed": {before: False, after: True},
        "decided": {before: False, after: False},
        "done": {before: True, after: False},
    }[stage][switch]
    assert job.state is (JobState.RUNNING if goes_on else JobState.LEAVING)
    if stage == "installed" and goes_on:
        assert told_of(racks)[-1].startswith(f"JOB_REMAP_OFF to mode {to}")
    await racks.until_idle()
    racks.assert_agrees()
    if goes_on:
        await all_leave(racks, job)
    assert racks.registry.slots_used() == 0
