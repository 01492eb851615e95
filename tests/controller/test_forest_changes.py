"""Jobs over several trees, and running jobs that change from one forest to another."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from ina.controller.config import TenantConfig
from ina.controller.errors import NoRoomError, SlotQuotaError
from ina.controller.job import JobState
from ina.controller.jobs.admission import usage
from ina.p4 import names
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest, forest_of
from ina.trees.nearest import Nearest
from ina.trees.slots import SlotRange
from tests.controller.forests import AT_A_SPINE, LEAVES, ONE_TO_THREE, SECOND_SPINE, over
from tests.worlds.fakes.changing import S, change_wholly, decide, finish, told_of
from tests.worlds.fakes.racks import SLOTS, Racks, fabric

pytestmark = pytest.mark.usefixtures("quick_retries")

ALL = (*LEAVES, "spine", SECOND_SPINE)


class Over(Nearest):
    """Every job over one forest."""

    def __init__(self, over: Forest) -> None:
        super().__init__(fabric())
        self._over = over

    def forest(self, job: str, endpoints: Mapping[int, Any]) -> Forest:
        return self._over


async def racks_over(forest: Forest, **more: Any) -> Racks:
    racks = Racks(more=[SECOND_SPINE], **more)
    await racks.start()
    racks.registry.placement = Over(forest)
    return racks


async def all_leave(racks: Racks, job: Any) -> None:
    await asyncio.gather(*racks.leave_all(job))
    await racks.until_idle()
    assert set(racks.used().values()) == {0}
    assert not any(session.of_jobs() for session in racks.sessions.values())
    assert racks.registry.numbers.are_free(range(1, 9))


async def test_a_job_over_two_trees_has_a_number_for_each_and_at_each_switch_what_passes_it() -> (
    None
):
    racks = await racks_over(ONE_TO_THREE)
    job = await racks.run(slots=32)
    assert (job.state, job.slots, job.window, job.lanes) == (JobState.RUNNING, 32, 16, 16)
    assert racks.used() == {"leaf1": 32, "leaf2": 32, "spine": 8, SECOND_SPINE: 24}
    assert usage([job]).slots == 96
    first, second = job.mapping.numbers
    assert (first, len(job.numbers)) == (job.number, 2)
    for number, switches in ((first, (*LEAVES, "spine")), (second, (*LEAVES, SECOND_SPINE))):
        assert {it for it in ALL if racks.sessions[it].rows_of(number)} == set(switches)
    assert job.size_text() == (
        "4 workers below spine, slots 0..7 of spine, 0..31 of leaf1, 0..31 of leaf2, 0..23 of"
        " spine2, window 16"
    )
    assert [job.rack_of(rank) for rank in range(4)] == ["leaf1", "leaf1", "leaf2", "leaf2"]
    racks.assert_agrees()
    await racks.coordinator.leave("j", 1, job.epoch)  # of both trees
    await racks.until_idle()
    racks.assert_agrees()
    # A successor finds it as it is.
    await racks.start()
    job = racks.registry.get("j")
    assert (job.forest, job.mapping.numbers) == (ONE_TO_THREE, (first, second))
    assert racks.used() == {"leaf1": 32, "leaf2": 32, "spine": 8, SECOND_SPINE: 24}
    racks.assert_agrees()
    await all_leave(racks, job)


async def test_where_one_root_has_no_room_the_job_is_nowhere() -> None:
    racks = await racks_over(ONE_TO_THREE)
    racks.registry.switches[SECOND_SPINE].memory.take("other", SLOTS - 8)
    answers = await asyncio.gather(
        *await racks.join_all("j", (1, 1, 2, 2), slots=16), return_exceptions=True
    )
    assert {type(answer) for answer in answers} == {NoRoomError}
    assert "on 1 of 4 switches that would sum it: switch spine2: no 12" in str(answers[0])
    assert racks.used() == dict.fromkeys(ALL, 0) | {SECOND_SPINE: SLOTS - 8}
    assert racks.registry.numbers.are_free(range(1, 9))
    job = await racks.run(slots=8)  # for 6 there is
    assert racks.used()[SECOND_SPINE] == SLOTS - 8 + 6
    assert job.state is JobState.RUNNING


@pytest.mark.parametrize(
    ("slots", "quota", "refused"),
    [(4, 0, JobRequestError), (32, 95, SlotQuotaError), (32, 96, None)],
)
async def test_too_few_lanes_or_too_many_slots_are_refused(
    slots: int, quota: int, refused: type[Exception] | None
) -> None:
    racks = await racks_over(ONE_TO_THREE, tenant=TenantConfig(slots=quota))
    calls = await racks.join_all("j", (1, 1, 2, 2), slots=slots)
    answers = await asyncio.gather(*calls, return_exceptions=True)
    if refused is not None:
        assert {type(answer) for answer in answers} == {refused}
        assert racks.registry.slots_used() == 0


@pytest.mark.parametrize(
    "other",
    [
        forest_of(over(SECOND_SPINE)),
        Forest((over(SECOND_SPINE), over("spine")), (1, 1)),
        Forest((AT_A_SPINE, over(SECOND_SPINE)), (5, 3)),
    ],
    ids=lambda forest: f"{forest.shares}",
)
async def test_a_running_job_goes_over_to_another_forest_and_back(other: Forest) -> None:
    racks = await racks_over(ONE_TO_THREE)
    job = await racks.run(slots=16)
    had, slots = job.mapping.numbers, job.slots
    await racks.coordinator.changes.change(job, forest=other, why="a test")
    told = decide(racks, job)
    assert (told.mapping.forest, told.mapping.slots) == (other, slots)
    assert not set(told.mapping.numbers) & set(had)
    racks.assert_agrees()
    finish(racks, job, told.mapping.epoch)
    await racks.until_idle()
    assert (job.forest, job.change) == (other, None)
    wanted = {name: other.slots_at(name, slots) for name in other.switches}
    assert racks.used() == dict.fromkeys(ALL, 0) | wanted
    assert told_of(racks)[-1].startswith("JOB_REMAPPED 16 slots")
    racks.assert_agrees()
    await racks.start()  # a successor goes on
    job = racks.registry.get("j")
    assert job.forest == other
    changes = racks.coordinator.changes
    await changes.change(job, forest=ONE_TO_THREE, slots=24, why="a test")
    await change_wholly(racks, job, S + 1)
    assert (job.forest, job.slots) == (ONE_TO_THREE, 24)
    assert racks.used() == {"leaf1": 24, "leaf2": 24, "spine": 6, SECOND_SPINE: 18}
    racks.assert_agrees()
    await all_leave(racks, job)


async def test_slots_of_a_forest_change_in_place_where_there_is_no_room_for_both() -> None:
    racks = await racks_over(ONE_TO_THREE)
    job = await racks.run(slots=40)
    numbers = job.mapping.numbers
    await racks.coordinator.changes.resize("j", 60, "a test")
    assert job.change is not None
    assert (job.change.in_place, job.change.other.slots) == (True, 56)  # by eights
    await change_wholly(racks, job)
    assert (job.slots, job.mapping.numbers) == (56, numbers)
    assert job.memory[SECOND_SPINE] == SlotRange(0, 42, 42)
    with pytest.raises(JobRequestError, match=r"4 slots for 2 trees .*: at least 8"):
        await racks.coordinator.changes.resize("j", 4, "a test")
    assert job.change is None
    racks.assert_agrees()
    await all_leave(racks, job)


async def test_in_mode_shared_a_job_is_summed_over_the_first_tree() -> None:
    racks = await racks_over(ONE_TO_THREE, mode=names.SHARED, aggregators=2)
    job = await racks.run(mode=names.SHARED)
    assert job.forest is not None
    assert [it.root.switch for it in job.forest] == ["agg", "agg2"]
    assert SECOND_SPINE not in job.forest
    racks.assert_agrees()
    await racks.coordinator.changes.change(
        job, forest=ONE_TO_THREE, mode=names.POOL, slots=16, why="a test"
    )
    await change_wholly(racks, job)
    assert (job.forest, job.mode) == (ONE_TO_THREE, names.POOL)
    racks.assert_agrees()
    await all_leave(racks, job)


async def test_a_switch_of_one_tree_that_loses_its_registers_ends_the_job() -> None:
    racks = await racks_over(ONE_TO_THREE)
    job = await racks.run(slots=16)
    other = await racks.run("other", slots=16)
    await asyncio.gather(*racks.leave_all(other))
    await racks.reconcile(SECOND_SPINE, fresh=True)
    assert job.state is not JobState.RUNNING
    await racks.until_idle()
    assert racks.registry.slots_used() == 0
