"""A controller that dies anywhere in the life of a job over three switches: its successor finds the
job on all of them or takes it off all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ina.controller import faults, retry
from ina.controller.job import JobState
from ina.tables.errors import SwitchError
from tests.worlds.fakes.racks import NAMES, Racks
from tests.worlds.fakes.reaper import Reaper, bury

NOT_HERE = ("own_results", "withdraw", "fail", "evict", "lost", "restore", "epoch.", "remap")
"""Steps that no job of these tests takes; for those of changes see test_change_kill_points."""
POINTS = [it for it in faults.POINTS if not it.startswith(NOT_HERE)]
TIMES = (1, 2, 3)
"""Each switch gets to a point between writes; the first controller dies at one of them."""


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(retry, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(retry, "MAX_PAUSE_S", 0.001)
    yield
    faults.observer = None


async def live(racks: Racks) -> None:
    """A job begins, one of its ranks leaves, then the others."""
    job = await racks.run()
    await racks.coordinator.leave("j", 0, job.epoch)
    await asyncio.gather(*racks.leave_all(job))


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("point", POINTS)
async def test_a_successor_finds_all_or_leaves_nothing(point: str, times: int) -> None:
    alive = asyncio.all_tasks()
    racks = Racks()
    await racks.start()
    faults.observer = reaper = Reaper(racks, point, times)
    life = asyncio.ensure_future(live(racks))
    while not (life.done() or reaper.is_dead):
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    faults.observer = None
    await bury(racks, alive)
    await racks.start()
    await racks.until_idle()
    racks.assert_agrees()
    jobs = list(racks.registry)
    assert all(job.state in (JobState.JOINING, JobState.RUNNING, JobState.LEAVING) for job in jobs)
    for job in jobs:
        rows = {name: len(racks.sessions[name].rows_of(job.number)) for name in NAMES}
        runs = job.state is not JobState.JOINING
        assert rows == dict.fromkeys(NAMES, int(runs)), job.state
        if runs:
            await asyncio.gather(*racks.leave_all(job))
            await racks.until_idle()
    if not any(job.state is JobState.JOINING for job in jobs):
        assert set(racks.used().values()) == {0}
    # Nothing of the former life is in the way of the next one.
    job = await racks.run("next")
    assert job.epoch > 0
    for session in racks.sessions.values():
        assert len(session.rows_of(job.number)) == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("point", ["released.decided", "released.stored", "remove.stage_0"])
async def test_death_while_one_switch_is_away(point: str, name: str) -> None:
    alive = asyncio.all_tasks()
    racks = Racks()
    await racks.start()
    job = await racks.run()
    racks.sessions[name].lost = True
    faults.observer = reaper = Reaper(racks, point, 1)
    racks.leave_all(job)
    while not reaper.is_dead:
        await asyncio.sleep(0)
    faults.observer = None
    await bury(racks, alive)
    await racks.start(reconcile=[other for other in NAMES if other != name])
    with pytest.raises(SwitchError):
        await racks.reconcile(name)
    racks.sessions[name].lost = False
    await racks.reconcile(name)
    await racks.until_idle()
    assert len(racks.registry) == 0
    assert set(racks.used().values()) == {0}
    assert [session.of_jobs() for session in racks.sessions.values()] == [[], [], []]
