"""The name of a job of which something is left on a switch that is away, and nowhere else."""

from __future__ import annotations

import asyncio

import pytest

from ina.controller.errors import JobConflictError
from ina.controller.job import Job, JobSpec, JobState
from ina.rpc import controller_pb2 as pb2
from ina.tables.errors import SwitchError
from tests.worlds.fakes.racks import JOB_SLOTS, TIMEOUT_S, Racks

pytestmark = pytest.mark.usefixtures("quick_retries")


def reach(racks: Racks, switch: str, *, is_reached: bool) -> None:
    racks.sessions[switch].lost = not is_reached
    racks.registry.switches[switch].is_reached = lambda: is_reached


async def lost(racks: Racks, *switches: str) -> Job:
    """A job over the spine that has ended, while these switches are away."""
    job = await racks.run("j", (1, 2))
    for switch in switches:
        reach(racks, switch, is_reached=False)
    racks.coordinator.lose(job, (), "the spine is lost", pb2.SWITCH_LOST)
    while set(job.switches) != set(switches):
        await asyncio.sleep(0)
    return job


async def test_it_is_free_for_the_next_and_the_former_job_keeps_what_it_has_there() -> None:
    racks = Racks()
    await racks.start()
    former = await lost(racks, "spine")
    with racks.coordinator.events.subscribe("j") as events:
        create = racks.coordinator.create(JobSpec("j", 2), TIMEOUT_S)
        assert await create is not former
        event = await anext(aiter(events))
    assert (event.kind, event.epoch) == (pb2.JOB_ENDED, former.epoch)
    assert event.reason == "its slots wait for 'spine': 'j (former 1)'"
    assert (former.name, former.state) == ("j (former 1)", JobState.LEAVING)
    assert racks.used() == {"leaf1": 0, "leaf2": 0, "spine": JOB_SLOTS}
    again = await racks.run("j", (1, 1))
    assert (again.state, again.switches) == (JobState.RUNNING, ("leaf1",))
    reach(racks, "spine", is_reached=True)
    await racks.until_idle()
    assert former.state is JobState.GONE
    assert [job.name for job in racks.registry] == ["j"]
    racks.assert_agrees()


async def test_a_successor_knows_it_by_its_other_name_and_removes_it_in_the_end() -> None:
    racks = Racks()
    await racks.start()
    former = await lost(racks, "spine")
    again = await racks.run("j", (1, 1))
    await racks.coordinator.close()
    await racks.start(reconcile=("leaf1", "leaf2"))
    adopted = {job.name: job for job in racks.registry}
    assert {name: job.number for name, job in adopted.items()} == {
        "j": again.number,
        "j (former 1)": former.number,
    }
    assert adopted["j"].state is JobState.RUNNING
    racks.sessions["spine"].lost = False
    await racks.reconcile("spine")
    await racks.until_idle()
    assert [job.name for job in racks.registry] == ["j"]
    assert racks.used()["spine"] == 0


@pytest.mark.parametrize(
    "away", [("leaf1", "leaf2", "spine"), ()], ids=["no switch is left", "all are there"]
)
async def test_it_is_kept_where_nothing_else_can_be_used_or_the_end_is_near(
    away: tuple[str],
) -> None:
    racks = Racks()
    await racks.start()
    if away:
        former = await lost(racks, *away)
        with pytest.raises(JobConflictError, match="the name 'j' is in use: it is leaving"):
            await racks.coordinator.create(JobSpec("j", 2), 0.1)
        assert former.name == "j"
        return
    former = await racks.run("j", (1, 2))
    racks.coordinator.lose(former, (), "the spine is lost", pb2.SWITCH_LOST)
    await racks.coordinator.create(JobSpec("j", 2), TIMEOUT_S)
    assert (former.name, former.state) == ("j", JobState.GONE)


async def test_a_job_that_needs_a_switch_that_is_away_takes_nothing() -> None:
    racks = Racks()
    await racks.start()
    reach(racks, "spine", is_reached=False)
    answers = await asyncio.gather(*await racks.join_all("j", (1, 2)), return_exceptions=True)
    assert {type(answer) for answer in answers} == {SwitchError}
    assert {str(answer) for answer in answers} == {
        "job 'j': 'spine' cannot be reached, and no way leads around"
    }
    assert not list(racks.registry)
    assert set(racks.used().values()) == {0}
