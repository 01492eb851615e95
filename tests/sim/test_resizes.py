"""Jobs that are resized while they reduce: what ships of everything, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from ina.controller import faults
from ina.controller.config import Config
from ina.errors import InaError
from ina.host.options import WorkerOptions
from ina.sim.controller import SimController
from ina.sim.plane import ControlPlane
from ina.sim.rank import Rank
from tests.worlds.virtual.controlled_star import check_sum, new_job, plane_of, run

HOSTS = ("h1", "h2", "h3")


def asked(config: Config) -> Config:
    return replace(config, jobs=replace(config.jobs, sizing="asked", slots=64))


class Training:
    """A job that reduces one array after the other, several at a time; all sums are checked."""

    def __init__(self, ranks: Sequence[Rank], pause_s: float = 0.05, at_once: int = 3) -> None:
        self.ranks, self.sums, self._pause_s = ranks, 0, pause_s
        self._stop = False
        self._task = asyncio.gather(*(self._run() for _ in range(at_once)))

    async def _run(self) -> None:
        while not self._stop:
            self.sums += 1
            await check_sum(self.ranks, self.sums)
            await asyncio.sleep(self._pause_s)

    async def end(self) -> None:
        self._stop = True
        await self._task
        assert all(rank.error is None for rank in self.ranks)


async def resized(controller: SimController, slots: int) -> None:
    """Once whatever is under way is over."""
    for _ in range(600):
        with contextlib.suppress(InaError):
            await controller.resize("job", slots)
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it changes for ever")


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_resizes_every_50_ms(loss: float) -> None:
    """It grows, shrinks and moves; each sum is exact, and each size is reached."""

    async def scenario(plane: ControlPlane) -> None:
        (controller,) = plane.controllers
        await controller.start()
        ranks = await new_job(plane, "job", HOSTS, options=WorkerOptions(slots=64, timeout_s=60.0))
        training, rng = Training(ranks, 0.003), random.Random(3)
        changed = 0
        for _ in range(60):
            slots = rng.choice([8, 32, 64, 256, 2048])
            with contextlib.suppress(InaError):  # it has so many, or changes still
                await controller.resize("job", slots)
                changed += 1
            await asyncio.sleep(0.05)
        await training.end()
        assert changed > 35
        assert training.sums > 500
        epochs = {rank.worker.mappings()[-1][0] for rank in ranks if rank.worker}
        assert len(epochs) == 1
        assert ranks[0].ticket is not None
        assert epochs == {ranks[0].ticket.epoch}

    with plane_of(loss=loss, hosts=3, change=asked) as plane:
        run(plane, scenario(plane))


ELSEWHERE = ("remap_free", "remap_off")  # of several switches; of a change that is called off
POINTS = [point for point in faults.OF_CHANGES if not point.startswith(ELSEWHERE)]


@pytest.mark.parametrize("point", POINTS)
def test_a_controller_that_is_killed_in_the_middle(point: str) -> None:
    """Sums go on, at the latest once its successor is there; and another change follows."""

    async def scenario(plane: ControlPlane) -> None:
        (controller,) = plane.controllers
        keeper = asyncio.ensure_future(controller.keep())
        ranks = await new_job(plane, "job", HOSTS, options=WorkerOptions(slots=64, timeout_s=60.0))
        training = Training(ranks)
        await resized(controller, 4096)
        await asyncio.sleep(0.5)
        controller.kill_at(point)
        with contextlib.suppress(InaError):  # to so many beside those that it has is no room
            await controller.resize("job", 6000 if point.startswith("remap_open") else 256)
        await asyncio.sleep(5.0)
        assert controller.killed_at == point
        before = training.sums
        await resized(controller, 512)
        await asyncio.sleep(1.0)
        assert training.sums > before + 10
        await training.end()
        for rank in ranks:
            assert rank.worker is not None
            assert len(rank.worker.mappings()) == 1
            assert rank.worker.window == 256
            await rank.leave()
        keeper.cancel()

    with plane_of(hosts=3, lease_s=30.0, change=asked) as plane:
        run(plane, scenario(plane))


def test_a_change_that_a_rank_does_not_hear_of_is_called_off() -> None:
    async def scenario(plane: ControlPlane) -> None:
        (controller,) = plane.controllers
        await controller.start()
        ranks = await new_job(plane, "job", HOSTS, options=WorkerOptions(slots=64, timeout_s=60.0))
        training = Training(ranks)
        ranks[1].pause(20.0)
        await controller.resize("job", 256)
        await asyncio.sleep(22.0)
        await training.end()
        for rank in ranks:
            assert rank.worker is not None
            assert [window for _, window in rank.worker.mappings()] == [32]
        await resized(controller, 128)
        await check_sum(ranks, 1)

    with plane_of(hosts=3, lease_s=60.0, change=asked) as plane:
        run(plane, scenario(plane))
