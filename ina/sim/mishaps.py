"""Lets happen what a scenario says goes wrong, and mends it again."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping

from ina.errors import InaError
from ina.sim.job_run import JobRun
from ina.sim.placing import with_congestion
from ina.sim.plane import ControlPlane
from ina.sim.scenario import FaultSpec, LinkSpec
from ina.sim.ways import Way


class Mishaps:
    """Of one run. Each of its methods that is a coroutine is to run as a task."""

    def __init__(
        self,
        plane: ControlPlane,
        jobs: Mapping[str, JobRun],
        seed: int,
        event: Callable[[str], None],
    ) -> None:
        self._plane = plane
        self._jobs = jobs
        self._seed = seed
        self._event = event
        self._ways = self._usual_ways()

    async def happen(self, number: int, fault: FaultSpec) -> None:
        """At its time, or again and again."""
        if fault.every_ms <= 0:
            await asyncio.sleep(fault.at_ms / 1e3)
            await self._one(fault)
            return
        chance = random.Random(f"{self._seed} fault {number}")
        mean_s = fault.every_ms / 1e3
        while True:
            await asyncio.sleep(chance.expovariate(1.0) * mean_s)
            await self._one(fault)
            mean_s *= fault.every_growth

    def mend_links(self) -> None:
        """From now on no link loses, delays or spoils anything."""
        for name in self._ways:
            usual = self._ways[name]
            clean = Way(
                bits_per_s=max(usual.bits_per_s, 10**9), delay_ns=min(usual.delay_ns, 10**5)
            )
            self._plane.fabric.set_way(name, clean)
        self._plane.fabric.mend()

    async def _one(self, fault: FaultSpec) -> None:
        where = f" {fault.where}" if fault.where else ""
        at = f" at {fault.point}" if fault.point else ""
        self._event(f"{fault.what}{where}{at} for {fault.for_ms:g} ms")
        for_s = fault.for_ms / 1e3
        fabric, plane = self._plane.fabric, self._plane
        if fault.what == "link_down":
            fabric.put(fault.where, is_down=True)
            await asyncio.sleep(for_s)
            fabric.put(fault.where, is_down=False)
        elif fault.what == "link":
            assert fault.link is not None
            await self._change(self._ways_of(fault.where), fault.link, for_s)
        elif fault.what in ("pause", "crash"):
            name, _, number = fault.where.partition("/")
            rank = self._jobs[name].rank(int(number))
            if rank is None:
                return
            if fault.what == "pause":
                rank.pause(for_s)
            else:
                rank.crash()
        elif fault.what == "power_cycle":
            agent = plane.agents[fault.where]
            agent.power_off()
            await asyncio.sleep(for_s)
            agent.power_on()
        elif fault.what == "resize":
            await self._resize(fault)
        elif fault.what == "repair":
            await self._take_out(fault.where, is_down=True)
            await asyncio.sleep(for_s)
            await self._take_out(fault.where, is_down=False)
        elif fault.what == "windows":
            for controller in plane.controllers:
                controller.reload(lambda config: with_congestion(config, fault))
        elif fault.what == "controller_kill":
            controller = plane.controllers[0]
            controller.away_s = for_s
            if fault.point:
                controller.kill_at(fault.point)
            else:
                controller.kill()
        else:
            plane.cut(plane.controllers[0].name)
            await asyncio.sleep(for_s)
            plane.mend(plane.controllers[0].name)

    async def _resize(self, fault: FaultSpec) -> None:
        """If the job runs, and there is room; as an operator, who takes no for an answer."""
        controller = self._plane.primary
        if controller is None:
            return
        try:
            await controller.resize(fault.where, fault.slots, fault.mode)
        except InaError as error:
            self._event(f"no resize: {error}")

    async def _take_out(self, name: str, *, is_down: bool) -> None:
        controller = self._plane.primary
        if controller is not None:
            with contextlib.suppress(InaError):
                await controller.take_out(name, is_down=is_down)

    async def _change(self, names: list[str], link: LinkSpec, for_s: float) -> None:
        for name in names:
            self._plane.fabric.set_way(name, link.way())
        await asyncio.sleep(for_s)
        for name in names:
            self._plane.fabric.set_way(name, self._ways[name])

    def _usual_ways(self) -> dict[str, Way]:
        ways = {}
        for cable in self._plane.fabric.topology.cables:
            ways[f"{cable.one}>{cable.other}"] = cable.there
            ways[f"{cable.other}>{cable.one}"] = cable.back
        return ways

    def _ways_of(self, where: str) -> list[str]:
        """Of a cable ``h1-s1`` both, of a way ``h1>s1`` itself."""
        if ">" in where:
            return [where]
        one, _, other = where.partition("-")
        return [f"{one}>{other}", f"{other}>{one}"]
