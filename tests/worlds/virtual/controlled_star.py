"""A star in virtual time with the shipped controller, and jobs whose sums are checked."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Any

import numpy as np

from ina.controller.config import DEFAULT_JOB_SLOTS, Config, JobsConfig
from ina.errors import InaError
from ina.fabric.shapes import racks, star
from ina.host.arrays import Array
from ina.host.options import WorkerOptions
from ina.p4 import names
from ina.sim.fabric import VirtualFabric
from ina.sim.loop import VirtualLoop
from ina.sim.messages import USUAL, Travel
from ina.sim.plane import ControlPlane, config_of
from ina.sim.rank import Rank
from ina.sim.topology import Cable, Topology, laid
from ina.sim.ways import Way

LIMIT_S = 600.0
"""Of virtual time, for any one scenario."""
MULTICAST = "239.192.0.0/24"
ELEMS = 500


@contextlib.contextmanager
def plane_of(
    *, seed: int = 1, hosts: int = 4, controllers: int = 1, lease_s: float = 2.0,
    travel: Travel = USUAL, loss: float = 0.0, limit_s: float = LIMIT_S, switches: int = 1,
    change: Callable[[Config], Config] = lambda config: config,
    racks_of: Sequence[int] = (), pod: int = 0,
) -> Iterator[ControlPlane]:  # fmt: skip
    """All of it, built; nothing has started. Of several switches, each takes two jobs at most.

    ``racks_of``: so many hosts in each rack of a tree, instead of ``hosts`` at islands.
    """
    way = Way(bits_per_s=10**10, delay_ns=2000, loss=loss)
    topology = laid(star(hosts), way) if switches == 1 else beside(hosts, switches, way)
    if racks_of:
        topology = laid(racks(racks_of, pod), way, above="p4")
    with (
        VirtualFabric(topology, seed=seed) as fabric,
        VirtualLoop(fabric.network, limit_s=limit_s) as loop,
    ):
        slots = DEFAULT_JOB_SLOTS if switches == 1 else names.SLOTS_TOTAL // 2
        jobs = JobsConfig(lease_s=lease_s, slots=slots)
        config = change(config_of(fabric, jobs=jobs, multicast=MULTICAST))
        with ControlPlane(
            loop, fabric, seed=seed, controllers=controllers, config=config, travel=travel
        ) as plane:
            yield plane


def beside(hosts: int, switches: int, way: Way) -> Topology:
    """P4 switches and hosts around one that only forwards, each by one cable."""
    ends = tuple(f"h{i + 1}" for i in range(hosts))
    summing = tuple(f"s{i + 1}" for i in range(switches))
    cables = tuple(Cable(name, "b1", way, way) for name in (*ends, *summing))
    return Topology(ends, {**dict.fromkeys(summing, "p4"), "b1": "plain"}, cables)


def run(plane: ControlPlane, scenario: Coroutine[Any, Any, None]) -> None:
    plane.loop.run_until_complete(scenario)


async def join_all(ranks: Sequence[Rank]) -> None:
    """Raises the first error of any, when all have an answer."""
    for found in await asyncio.gather(*(rank.join() for rank in ranks), return_exceptions=True):
        if isinstance(found, BaseException):
            raise found


async def started(plane: ControlPlane) -> None:
    for controller in plane.controllers:
        await controller.start()


async def new_job(
    plane: ControlPlane, name: str, hosts: Sequence[str], **options: Any
) -> list[Rank]:
    """Ranks that have joined."""
    ranks = [plane.rank(name, i, len(hosts), host, **options) for i, host in enumerate(hosts)]
    await join_all(ranks)
    return ranks


def values(rank: Rank, number: int) -> Array:
    """What a rank gives to all-reduce ``number``: differs by rank and number."""
    return np.arange(ELEMS, dtype=np.int32) * (rank.seat.rank + 1) + number * 1000


async def check_sum(ranks: Sequence[Rank], number: int) -> None:
    """One all-reduce: the exact sum at each rank, or the error of the first that has one."""
    arrays = [values(rank, number) for rank in ranks]
    outs = await asyncio.gather(
        *(rank.all_reduce(array) for rank, array in zip(ranks, arrays, strict=True)),
        return_exceptions=True,
    )
    exact = np.sum(arrays, axis=0)
    for out in outs:
        if isinstance(out, BaseException):
            raise out
        np.testing.assert_array_equal(out, exact)


class Bystander:
    """A job that reduces all along, and keeps what it was given."""

    def __init__(self, ranks: list[Rank]) -> None:
        self.ranks = ranks
        self.sums = 0
        self._stop = asyncio.Event()
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while not self._stop.is_set():
            self.sums += 1
            await check_sum(self.ranks, self.sums)
            await asyncio.sleep(0.1)

    async def end(self) -> None:
        """Raises what went wrong with it."""
        self._stop.set()
        await self._task
        assert self.sums > 0
        await asyncio.gather(*(rank.leave() for rank in self.ranks))


async def until_runs(
    plane: ControlPlane, name: str, hosts: Sequence[str], within_s: float = 120.0
) -> list[Rank]:
    """A new job of this name, tried until it runs: whoever had the name must end."""
    end_s = plane.loop.time() + within_s
    while True:
        try:
            return await new_job(plane, name, hosts, options=WorkerOptions(timeout_s=20.0))
        except InaError:
            if plane.loop.time() > end_s:
                raise
        await asyncio.sleep(0.5)


async def gone(work: Awaitable[Any]) -> InaError | None:
    """The typed error that it ended with, if any."""
    try:
        await work
    except InaError as error:
        return error
    return None
