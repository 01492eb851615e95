"""Training by hosts alone: in a ring of DCTCP flows, beside other flows of a scenario."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from ina.sim.errors import ScenarioError
from ina.sim.fabric import VirtualFabric
from ina.sim.flows import Completion
from ina.sim.job_run import JobRun
from ina.sim.traffic import Flows, IncastSpec, UdpStream, add_traffic
from ina.sim.windows.tcp import DCTCP
from ina.sim.windows.timing import READY_MS

_LOOK_S = 20e-6
"""From look to look, whether a step is done."""


class Beside:
    """Sees what becomes of the flows, and lets hosts do something beside them."""

    def __init__(self, end_s: float) -> None:
        """``end_s``: of the run, in its virtual time."""
        self.end_s = end_s
        self.completions: list[Completion] = []

    async def __call__(
        self,
        fabric: VirtualFabric,
        _jobs: Mapping[str, JobRun],
        traffic: Sequence[Flows | UdpStream],
    ) -> None:
        """As a :data:`ina.sim.run.Watch`."""
        await self.do(fabric)
        for flows in traffic:
            if isinstance(flows, Flows):
                self.completions += flows.completions()

    async def do(self, fabric: VirtualFabric) -> None:
        """Until the end: nothing."""
        await asyncio.sleep(self.end_s - fabric.network.now_ns / 1e9)


class Ring(Beside):
    """Trains in a ring.

    A step's flows go from each host to the next at once, for hosts pass on part by part what they
    have; the step ends with the last of them. In truth a part waits for the one before, too, so a
    ring is no faster.
    """

    def __init__(self, end_s: float, step_bytes: float, compute_s: float) -> None:
        """Args:
        end_s: as the base has it; the step that is under way then is the last.
        step_bytes: that each host sends to the next, of a step.
        compute_s: of a step, before its sums.
        """
        super().__init__(end_s)
        self._step_bytes = step_bytes
        self._compute_s = compute_s
        self.sums_s: list[float] = []
        """By step."""

    async def do(self, fabric: VirtualFabric) -> None:
        """Steps, until one ends at the end or later."""
        network = fabric.network
        ready_s = READY_MS / 1e3 + self._compute_s
        while ready_s < self.end_s:
            await asyncio.sleep(ready_s - network.now_ns / 1e9)
            begun_ns = network.now_ns
            done_ns = await self._sum(fabric)
            self.sums_s.append((done_ns - begun_ns) / 1e9)
            ready_s = done_ns / 1e9 + self._compute_s

    async def _sum(self, fabric: VirtualFabric) -> int:
        """Until all have it: when that was, ns."""
        hosts = fabric.topology.hosts
        specs = [
            IncastSpec(
                name=f"ring{len(self.sums_s)}-{host}",
                sources=[host],
                destinations=[hosts[(number + 1) % len(hosts)]],
                size_kib=self._step_bytes / 1024,
                start_ms=fabric.network.now_ns / 1e6,
                tcp=DCTCP,
            )
            for number, host in enumerate(hosts)
        ]
        flows = [one for one in add_traffic(fabric, specs) if isinstance(one, Flows)]
        while not all(one.completions() for one in flows):
            await asyncio.sleep(_LOOK_S)
        done_ns = [one.completions()[0].done_ns for one in flows]
        found = [at_ns for at_ns in done_ns if at_ns is not None]
        if len(found) < len(done_ns):
            raise ScenarioError("a flow of the ring was given up")
        return max(found)
