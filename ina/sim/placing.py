"""Which hosts the ranks of a scenario's jobs are on, where it does not say so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from ina.controller.config import Config, JobRule
from ina.sim.racks import joined, tree_of
from ina.sim.scenario import FaultSpec, JobSpec
from ina.sim.topology import Topology


def job_rules(jobs: Sequence[JobSpec]) -> tuple[JobRule, ...]:
    """What the controller's file says of each job and its copies."""
    return tuple(
        JobRule(name, weight=job.weight, congestion=job.congestion or None)
        for job in jobs
        for name in job.names()
    )


def with_congestion(config: Config, fault: FaultSpec) -> Config:
    """The controller's file with another algorithm for one job."""
    rules = tuple(
        replace(rule, congestion=fault.congestion or None) if rule.name == fault.where else rule
        for rule in config.job_rules
    )
    return replace(config, job_rules=rules)


def placed(jobs: Sequence[JobSpec], topology: Topology) -> list[JobSpec]:
    """Each job as often as it has copies, ``NAME-1``, ``NAME-2`` ..., and each with its hosts.

    Jobs without hosts get those that follow, in the topology's order, behind as many switches as
    they have racks, in equal parts: one that does not fit behind the rest of them begins at the
    next. After the last host comes the first, and a part with more ranks than there are hosts has
    several on one.
    """
    by_switch: dict[str, list[str]] = {}
    for host in topology.hosts:
        by_switch.setdefault(topology.switch_of(host), []).append(host)
    racks = list(by_switch.values())
    used: Counter[int] = Counter()  # by rack: hosts that are
    first = 0
    found = []
    for spec, name in [(job, name) for job in jobs for name in job.names()]:
        hosts = spec.hosts
        if not hosts:
            parts = _parts(spec.workers, spec.racks)
            for _ in racks:
                there = [(first + i) % len(racks) for i in range(len(parts))]
                if all(_fits(used[rack], part, racks[rack])
                       for rack, part in zip(there, parts, strict=True)):  # fmt: skip
                    break
                first = (first + 1) % len(racks)
            else:  # nowhere: from the start
                for rack in there:
                    used[rack] = 0
            hosts = []
            for rack, part in zip(there, parts, strict=True):
                here = racks[rack]
                hosts += [here[(used[rack] + i) % len(here)] for i in range(part)]
                used[rack] += part
        found.append(replace(spec, name=name, copies=1, racks=1, hosts=hosts))
    return found


def check_placed(jobs: Sequence[JobSpec], topology: Topology) -> None:
    """Raises :class:`~ina.sim.errors.ScenarioError`: the switches that there are cannot sum one."""
    fabric = joined(topology)
    for job in placed(jobs, topology):
        tree_of(fabric, topology, job.name, job.hosts)


def _parts(workers: int, racks: int) -> list[int]:
    """As equal as they can be."""
    return [workers // racks + (i < workers % racks) for i in range(racks)]


def _fits(used: int, part: int, rack: Sequence[str]) -> bool:
    return used == 0 or used + part <= len(rack)
