"""Looks at windows, queues and goodput now and then, for the plot."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from ina.sim.fabric import VirtualFabric
from ina.sim.job_run import JobRun
from ina.sim.report import Samples
from ina.sim.scenario import Scenario

_MOST = 4000
"""Samples; beyond, each second one is dropped and half as many are taken."""


class Sampler:
    """Of one run."""

    def __init__(self, scenario: Scenario, fabric: VirtualFabric) -> None:
        self.samples = Samples()
        self._fabric = fabric
        self._every_s = scenario.sample_us / 1e6
        self._first_s = self._every_s or 20e-6
        self._sent: dict[str, int] = {}

    async def keep_looking(self, jobs: Mapping[str, JobRun]) -> None:
        """For ever. Often at first; if the run is long, less and less often."""
        every_s = self._first_s
        while True:
            await asyncio.sleep(every_s)
            self._look(jobs, every_s)
            if len(self.samples.at_s) >= _MOST:
                every_s *= 2
                self._thin()

    def _look(self, jobs: Mapping[str, JobRun], every_s: float) -> None:
        samples = self.samples
        count = len(samples.at_s)
        samples.at_s.append(self._fabric.network.now_ns / 1e9)
        for name, job in jobs.items():
            workers = []
            if job.incarnations:
                ranks = job.incarnations[-1].ranks
                workers = [rank.worker for rank in ranks if rank.worker is not None]
            limit = sum(worker.in_flight_limit for worker in workers)
            _put(samples.windows, name, count, limit / len(workers) if workers else 0.0)
            done = workers[0].counters.bytes_done if workers else 0
            former = self._sent.get(name, 0)
            self._sent[name] = done
            rate = max(done - former, 0) * 8e-9 / every_s
            _put(samples.goodput, name, count, rate)
        for name, port in self._fabric.ports.items():
            waiting = port.waiting_bytes
            if waiting or name in samples.queues:
                _put(samples.queues, name, count, float(waiting))

    def _thin(self) -> None:
        samples = self.samples
        samples.at_s[:] = samples.at_s[::2]
        for series in (samples.windows, samples.queues, samples.goodput):
            for values in series.values():
                values[:] = values[::2]


def _put(series: dict[str, list[float]], name: str, count: int, value: float) -> None:
    values = series.setdefault(name, [])
    values += [0.0] * (count - len(values))  # it was not there before
    values.append(value)
