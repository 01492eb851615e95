"""Looks at a run at even intervals, from the first packet of its jobs on, and then ends it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ina.extension import sim as native
from ina.sim import run
from ina.sim.claims import claims
from ina.sim.errors import ScenarioError
from ina.sim.fabric import VirtualFabric
from ina.sim.flows import Completion
from ina.sim.job_run import JobRun
from ina.sim.reading import check
from ina.sim.scenario import Scenario
from ina.sim.traffic import Flows, UdpStream
from ina.sim.windows.history import Floats, History, JobHistory, PortHistory

_NEVER_S = 20.0
"""Until the first packet: a run in which none has been sent by then is given up."""
_SOON_S, _LATER_S = 50e-6, 1e-3
"""From look to look, until then: where a worker has joined, and before."""
_PATIENCE_US = 40_000
"""Twice the usual age: who claims a slot has it for so long, unless its priority is high."""


@dataclass
class Watch:
    """One run's. ``await watch(...)`` is what :class:`~ina.sim.run.Simulation` does."""

    every_s: float
    total_s: float
    """Since the first packet."""
    shared_slots: int = 0
    """Of the first P4 switch: whose they are is looked at, too."""

    def __post_init__(self) -> None:
        self.began_s = 0.0
        self.completions: list[Completion] = []
        """Of all traffic, those that have ended."""
        self.reduced_s: dict[str, list[float]] = {}
        """By job: of each step that rank 0 has done, how long it reduced."""
        self._at_s: list[float] = []
        self._jobs: dict[str, list[list[float]]] = {}
        self._windows: dict[str, list[list[int]]] = {}
        self._ports: dict[str, list[tuple[int, int, int, int]]] = {}
        self._flows: dict[str, list[dict[int, int]]] = {}
        self._held: dict[str, list[int]] = {}

    async def __call__(
        self,
        fabric: VirtualFabric,
        jobs: Mapping[str, JobRun],
        traffic: Sequence[Flows | UdpStream],
    ) -> None:
        """Until the time is over. Raises :class:`ScenarioError`: no job began."""
        network = fabric.network
        while jobs and not any(_has_sent(job) for job in jobs.values()):
            if network.now_ns > _NEVER_S * 1e9:
                raise ScenarioError(f"no job has sent a packet in {_NEVER_S:g} s")
            has_joined = any(worker for job in jobs.values() for worker in _workers(job))
            await asyncio.sleep(_SOON_S if has_joined else _LATER_S)
        self.began_s = network.now_ns / 1e9
        for number in range(round(self.total_s / self.every_s) + 1):
            await asyncio.sleep(self.began_s + number * self.every_s - network.now_ns / 1e9)
            self._look(fabric, jobs, traffic)
        for name, job in jobs.items():
            self.reduced_s[name] = [time_s for one in job.incarnations for time_s in one.reduced_s]
        for flows in traffic:
            if isinstance(flows, Flows):
                self.completions += flows.completions()

    def _look(
        self,
        fabric: VirtualFabric,
        jobs: Mapping[str, JobRun],
        traffic: Sequence[Flows | UdpStream],
    ) -> None:
        self._at_s.append(fabric.network.now_ns / 1e9 - self.began_s)
        for name, job in jobs.items():
            workers = _workers(job)
            self._jobs.setdefault(name, []).append(_counts(workers))
            limits = [worker.in_flight_limit if worker else 0 for worker in workers]
            self._windows.setdefault(name, []).append(limits or [0] * job.spec.workers)
        for name, port in fabric.ports.items():
            told = port.counters
            now = (port.waiting_bytes, told.sent_bytes, told.offered_packets, told.full_packets)
            self._ports.setdefault(name, []).append(now)
        for one in traffic:
            if isinstance(one, Flows):
                self._flows.setdefault(one.name, []).append(dict(one.native.progress()))
        if self.shared_slots:
            self._look_at_slots(fabric, jobs)

    def _look_at_slots(self, fabric: VirtualFabric, jobs: Mapping[str, JobRun]) -> None:
        switch = next(iter(fabric.switches.values()))
        now_us = fabric.network.now_ns // 1000
        found = claims(switch, self.shared_slots, now_us=now_us, within_us=_PATIENCE_US)
        owners = Counter(epoch for _, epoch in found)
        for name, job in jobs.items():
            rank = job.rank(0)
            epoch = rank.ticket.epoch if rank and rank.ticket else 0
            self._held.setdefault(name, []).append(owners[epoch])

    def history(self) -> History:
        """Of what was seen."""
        return History(
            at_s=np.array(self._at_s),
            began_s=self.began_s,
            jobs={name: self._job(name) for name in self._jobs},
            ports={
                name: PortHistory(*np.array(rows, float).T) for name, rows in self._ports.items()
            },
            flows={name: _table(rows) for name, rows in self._flows.items()},
            slots={name: np.array(held, float) for name, held in self._held.items()},
        )

    def _job(self, name: str) -> JobHistory:
        # Whoever has died counts no more: what was counted stays.
        counts = np.maximum.accumulate(np.array(self._jobs[name], float), axis=0).T
        done, sent, resent, probes, timeouts, marked = counts
        windows = np.array(self._windows[name], float)
        return JobHistory(done, windows, sent, resent, probes, timeouts, marked)


def observe(scenario: Scenario, seed: int, watch: Watch) -> History:
    """Runs it. Raises :class:`ScenarioError`: it cannot be, a job ended, or a sum was wrong."""
    run_watched(scenario, seed, watch)
    return watch.history()


def run_watched(scenario: Scenario, seed: int, watch: run.Watch) -> None:
    """The same, with what ``watch`` makes of it."""
    check(scenario)
    report = run.Simulation(scenario, seed, watch=watch).run()
    if report.violations:
        raise ScenarioError(f"{scenario.name}: {report.violations[0]}")


def _workers(job: JobRun) -> list[native.Worker | None]:
    return [rank.worker for rank in job.incarnations[-1].ranks] if job.incarnations else []


def _has_sent(job: JobRun) -> bool:
    return any(worker is not None and worker.counters.packets_sent for worker in _workers(job))


def _counts(workers: Sequence[native.Worker | None]) -> list[float]:
    """In the order of :class:`JobHistory`, without windows."""
    there = [worker.counters for worker in workers if worker is not None]
    first: Any = workers[0] if workers else None
    return [
        first.counters.bytes_done if first is not None else 0,
        sum(it.packets_sent for it in there),
        sum(it.retransmissions for it in there),
        sum(it.probes for it in there),
        sum(it.timeouts for it in there),
        sum(it.ecn_marked for it in there),
    ]


def _table(rows: Sequence[Mapping[int, int]]) -> Floats:
    """(looks, flows) of bytes by the flow's number."""
    numbers = sorted({number for row in rows for number in row})
    columns = [[row.get(number, 0) for row in rows] for number in numbers]
    table = np.array(columns, float).reshape(len(numbers), len(rows)).T
    return np.maximum.accumulate(table, axis=0)
