"""Much at once, by chance: controllers, ranks, the switch and the ways between them fail.

Whatever happens, sums are right, every wait ends by an error of ina's, and once the faults end
everything becomes free again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from ina.controller import faults
from ina.controller.switches.plan import MARK_JOB
from ina.host.options import WorkerOptions
from ina.p4 import names
from ina.sim.messages import Travel
from ina.sim.plane import ControlPlane
from ina.sim.southbound import CALL_TIMEOUT_S
from ina.tables.p4runtime import PROBE_S
from tests.selection import LONG
from tests.worlds.virtual.controlled_star import check_sum, gone, plane_of, run, until_runs

SEEDS = 200 if LONG else 6
HOSTS = [f"h{i + 1}" for i in range(6)]
TROUBLE_S = 60.0
NOTICED_S = PROBE_S + CALL_TIMEOUT_S + 1.0
"""That a switch has lost its power, where nobody says so."""
LIFE_S = 400.0
"""Joining, 12 sums, each until its error, and leaving."""


class Chaos:
    """One run."""

    def __init__(self, plane: ControlPlane, seed: int) -> None:
        self.plane = plane
        self.chance = random.Random(f"chaos {seed}")
        self.sums = 0
        self.epochs: dict[int, str] = {}
        self.is_over = False

    async def run(self) -> None:
        plane, chance = self.plane, self.chance
        keepers = [asyncio.ensure_future(it.keep()) for it in plane.controllers]
        jobs = []
        for i in range(chance.randint(1, 3)):
            hosts = chance.choices(HOSTS, k=chance.randint(1, 4))  # some share one, and results
            jobs.append(asyncio.ensure_future(self._lives(f"job{i}", hosts)))
        while plane.loop.time() < TROUBLE_S:
            await asyncio.sleep(chance.expovariate(0.3))
            trouble: Callable[[], Awaitable[None]] = chance.choice(
                [
                    *(self._kill, self._kill_at, self._crash, self._pause, self._power_cycle),
                    *(self._cut, self._cut_one_path, self._evict, self._lack_multicast),
                ]
            )
            await trouble()
        self.is_over = True
        for controller in plane.controllers:
            controller.spare()
        plane.set_travel(Travel())
        await asyncio.wait_for(asyncio.gather(*jobs), LIFE_S)
        ranks = await until_runs(plane, "job0", HOSTS[:2])
        await check_sum(ranks, 1)
        await asyncio.gather(*(rank.leave() for rank in ranks))
        await asyncio.sleep(NOTICED_S)
        await asyncio.wait_for(self._until_idle(), 100.0)
        for switch in plane.fabric.switches.values():  # but for the epoch mark, and its address
            of_jobs = [it for it in switch.entries() if it.table != names.OWN_ADDRESSES]
            assert [(it.table, dict(it.match)["job"]) for it in of_jobs] == [(names.JOBS, MARK_JOB)]
            assert switch.groups() == []
        for keeper in keepers:
            keeper.cancel()

    async def _until_idle(self) -> None:
        while (primary := self.plane.primary) is None or primary.jobs() or not primary.agrees:
            await asyncio.sleep(0.5)

    async def _lives(self, name: str, hosts: list[str]) -> None:
        while not self.is_over:
            ranks = [
                self.plane.rank(
                    name,
                    i,
                    len(hosts),
                    host,
                    WorkerOptions(timeout_s=20.0, op_timeout_s=20.0),
                    shares_results=True,
                )
                for i, host in enumerate(hosts)
            ]
            joined = await asyncio.gather(*(gone(rank.join()) for rank in ranks))
            if not any(joined):
                for rank in ranks:
                    assert rank.ticket is not None
                    whose = self.epochs.setdefault(rank.ticket.epoch, str(ranks[0]))
                    assert whose == str(ranks[0]), "an epoch was given out twice"
                for number in range(12):
                    if await gone(check_sum(ranks, number)) is not None:
                        break
                    self.sums += 1
                    await asyncio.sleep(self.chance.uniform(0.0, 1.0))
            await asyncio.gather(*(gone(rank.leave()) for rank in ranks))
            await asyncio.sleep(0.5)

    async def _kill(self) -> None:
        self.chance.choice(self.plane.controllers).kill()

    async def _kill_at(self) -> None:
        self.chance.choice(self.plane.controllers).kill_at(self.chance.choice(faults.POINTS))

    async def _cut(self) -> None:
        where = self.chance.choice([*self.plane.agents, "c1", self.chance.choice(HOSTS)])
        self.plane.cut(where)
        await asyncio.sleep(self.chance.expovariate(0.2))
        self.plane.mend(where)

    async def _cut_one_path(self) -> None:
        path = self.chance.choice(list(self.plane.paths.values()))
        path.cut()
        await asyncio.sleep(self.chance.expovariate(0.1))
        path.mend()

    async def _evict(self) -> None:
        primary = self.plane.primary
        if primary is not None and (jobs := primary.jobs()):
            await gone(primary.evict(self.chance.choice(jobs).name, "by chance"))

    async def _lack_multicast(self) -> None:
        alive = [rank for rank in self.plane.ranks if rank.worker is not None]
        if alive:
            self.chance.choice(alive).want_own_results()

    async def _power_cycle(self) -> None:
        agent = self.chance.choice(list(self.plane.agents.values()))
        agent.power_off(silently=self.chance.random() < 0.5)
        await asyncio.sleep(self.chance.expovariate(0.5))
        agent.power_on()

    async def _crash(self) -> None:
        alive = [rank for rank in self.plane.ranks if not rank.process.is_dead]
        if alive:
            self.chance.choice(alive).crash(silently=self.chance.random() < 0.5)

    async def _pause(self) -> None:
        alive = [rank for rank in self.plane.ranks if not rank.process.is_dead]
        if alive:
            self.chance.choice(alive).pause(self.chance.expovariate(0.5))


@pytest.mark.parametrize("racks", [(), (2, 1, 3)], ids=["islands", "racks"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_fails_sums_are_right_and_everything_ends(
    seed: int, racks: tuple[int, ...]
) -> None:
    chance = random.Random(f"way {seed}")
    travel = Travel(most_s=chance.choice([2e-4, 1e-2, 0.2]), loss=chance.choice([0.0, 0.02, 0.1]))
    with plane_of(
        seed=seed,
        hosts=len(HOSTS),
        controllers=chance.choice([1, 2]),
        travel=travel,
        loss=chance.choice([0.0, 0.01]),
        switches=chance.choice([1, 2]),
        limit_s=3000.0,
        racks_of=racks,
        pod=2 * (seed % 2),
    ) as plane:
        run(plane, Chaos(plane, seed).run())
