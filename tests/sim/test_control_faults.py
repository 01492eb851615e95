"""``kill -9`` of the controller at each of its named points, in virtual time.

As ``tests/controller/test_faults.py`` does with real processes, beside a job that runs all along;
here packets, messages and the successor run on by themselves, and everything must end in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ina.controller import faults
from ina.host.options import WorkerOptions
from ina.p4 import names
from ina.sim.errors import CrashedError
from ina.sim.plane import ControlPlane
from ina.trees.slots import SlotRange
from tests.worlds.virtual.controlled_star import (
    Bystander,
    check_sum,
    gone,
    join_all,
    new_job,
    plane_of,
    run,
    until_runs,
)

VICTIM = "victim"
HOSTS = ("h3", "h4")
NO_SUCH_PORT = 600  # v1model's ports have 9 bits
TEN_S = WorkerOptions(timeout_s=10.0)
PATIENT, HASTY = WorkerOptions(timeout_s=20.0), WorkerOptions(timeout_s=5.0)


async def live(plane: ControlPlane) -> None:
    """A job's whole life."""
    ranks = await new_job(plane, VICTIM, HOSTS, options=PATIENT)
    await check_sum(ranks, 1)
    for rank in ranks:
        await rank.leave()


async def lack_multicast(plane: ControlPlane) -> None:
    behind_one_port = ("h3", "h3")
    ranks = await new_job(plane, VICTIM, behind_one_port, options=PATIENT, shares_results=True)
    await check_sum(ranks, 1)
    ranks[0].want_own_results()
    await asyncio.sleep(1.0)
    await check_sum(ranks, 2)
    await asyncio.gather(*(rank.leave() for rank in ranks))


async def be_evicted(plane: ControlPlane) -> None:
    ranks = await new_job(plane, VICTIM, HOSTS, options=PATIENT)
    try:
        await plane.controllers[0].evict(VICTIM, "room is needed")
    finally:
        await asyncio.gather(*(rank.leave() for rank in ranks))


async def die(plane: ControlPlane) -> None:
    ranks = await new_job(plane, VICTIM, HOSTS, options=PATIENT)
    ranks[1].crash()
    await check_sum(ranks[:1], 1)


async def hang_up(plane: ControlPlane) -> None:
    ranks = [plane.rank(VICTIM, i, 3, host, HASTY) for i, host in enumerate(HOSTS)]
    joining = asyncio.ensure_future(join_all(ranks))
    await asyncio.sleep(0.5)
    ranks[0].crash()
    await joining


async def be_refused(plane: ControlPlane) -> None:
    rank = plane.rank(VICTIM, 0, 1, "h3", options=PATIENT, switch_port=NO_SUCH_PORT)
    await rank.join()


async def restart(plane: ControlPlane) -> None:
    plane.controllers[0].kill()
    await asyncio.sleep(5.0)


async def restart_while_joining(plane: ControlPlane) -> None:
    joining = asyncio.ensure_future(plane.rank(VICTIM, 0, 2, "h3", TEN_S).join())
    await asyncio.sleep(0.5)
    await restart(plane)
    await joining


SCENARIOS: dict[str, Callable[[ControlPlane], Awaitable[None]]] = {
    "own_results": lack_multicast,
    "evict": be_evicted,
    "lost": die,
    "withdraw": hang_up,
    "fail": be_refused,
    "restore": restart_while_joining,
    "epoch": restart,
}
"""By step; all other points are in a job's normal life."""


OWN = names.OWN_ADDRESSES
NOT_HERE = {*faults.OF_TREES, *faults.OF_CHANGES}
"""Of several switches; of changes of slots, which have tests of their own."""
ONE_SWITCH = [point for point in faults.POINTS if point not in NOT_HERE]


@pytest.mark.parametrize("point", ONE_SWITCH)
def test_a_controller_killed_there_is_followed_by_one_that_goes_on(point: str) -> None:
    async def scenario(plane: ControlPlane) -> None:
        controller = plane.controllers[0]
        keeper = asyncio.ensure_future(controller.keep())
        bystander = Bystander(await until_runs(plane, "bystander", ["h1", "h2"]))
        given = granted(plane, "bystander")
        controller.kill_at(point)
        await gone(SCENARIOS.get(point.partition(".")[0], live)(plane))
        assert controller.killed_at == point
        for rank in await until_runs(plane, VICTIM, HOSTS):  # whatever became of the first
            await rank.leave()
        assert granted(plane, "bystander") == given
        await bystander.end()
        await until_idle(plane)
        keeper.cancel()

    with plane_of() as plane:
        run(plane, scenario(plane))


def granted(plane: ControlPlane, job: str) -> tuple[int, int, dict[str, SlotRange]]:
    """Number, epoch and slots, as the controller that answers has them."""
    found = next(it for it in plane.jobs() or () if it.name == job)
    return found.number, found.epoch, found.memory


async def until_idle(plane: ControlPlane) -> None:
    """Every job ends by itself, and the switch has nothing but the epoch mark then."""
    while plane.jobs() != []:
        await asyncio.sleep(0.5)
    switch = plane.fabric.switches["s1"]
    assert [(it.table, it.match) for it in switch.entries() if it.table != OWN] == [
        (names.JOBS, (("job", 0), ("epoch", 0)))
    ]
    assert switch.groups() == []


def test_a_start_that_is_killed_says_so() -> None:
    async def scenario(plane: ControlPlane) -> None:
        controller = plane.controllers[0]
        controller.kill_at("epoch.decided")
        with pytest.raises(CrashedError, match=r"epoch\.decided"):
            await controller.start()
        assert not controller.is_up
        await controller.start()
        assert controller.is_primary

    with plane_of() as plane:
        run(plane, scenario(plane))
