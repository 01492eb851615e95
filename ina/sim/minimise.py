"""The smallest scenario on which a violation still shows: with less of everything, one at a time.

A change is kept if the same kind of violation comes again with the same seed. Links are made clean,
jobs, faults, workers, steps and tensors taken away, until nothing more can be, or time is up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from ina.sim.scenario import (
    ControllerSpec,
    HostSpec,
    JobSpec,
    LinkSpec,
    Scenario,
    StragglerSpec,
    TopologySpec,
)

Fails = Callable[[Scenario], bool]


def minimise(
    scenario: Scenario,
    fails: Fails,
    *,
    budget_s: float = 60.0,
    told: Callable[[int], None] = lambda _tried: None,
) -> Scenario:
    """Returns the smallest scenario found for which ``fails`` is true, as it is of this one.

    ``told``: of each one tried. After ``budget_s`` seconds the best so far is returned.
    """
    until_s = time.monotonic() + budget_s
    tried = 0
    found = True
    while found:
        found = False
        for smaller in _smaller(scenario):
            if time.monotonic() > until_s:
                return scenario
            tried += 1
            told(tried)
            if smaller != scenario and fails(smaller):
                scenario, found = smaller, True
                break
    return scenario


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """What to try, what saves most first."""
    jobs, faults = scenario.job, scenario.fault
    for i in range(len(jobs)):
        rest = [fault for fault in faults if fault.where.partition("/")[0] != jobs[i].name]
        if len(jobs) > 1:
            yield replace(scenario, job=jobs[:i] + jobs[i + 1 :], fault=rest)
    if len(faults) > 1:
        yield replace(scenario, fault=[])
    for i in range(len(faults)):
        yield replace(scenario, fault=faults[:i] + faults[i + 1 :])
    for i, job in enumerate(jobs):
        for smaller in _smaller_jobs(job):
            kept = [
                fault
                for fault in faults
                if not fault.where.startswith(f"{job.name}/")
                or int(fault.where.partition("/")[2]) < smaller.workers
            ]
            yield replace(scenario, job=[*jobs[:i], smaller, *jobs[i + 1 :]], fault=kept)
    for topology in _smaller_topologies(scenario.topology):
        yield _with(scenario, topology)
    for key in ("link_back", "link_up"):
        yield replace(scenario, **{key: None})
    for key in ("link", "link_back", "link_up"):
        link = getattr(scenario, key)
        if link is not None:
            for cleaner in _cleaner(link):
                yield replace(scenario, **{key: cleaner})
    yield replace(scenario, host=HostSpec())
    yield replace(scenario, multicast=False)
    yield replace(scenario, ecn_packets=0)
    yield replace(scenario, congestion={})
    lease_s = scenario.controller.lease_s
    yield replace(scenario, controller=ControllerSpec(lease_s=lease_s))
    yield replace(scenario, values=64)


def _smaller_topologies(topology: TopologySpec) -> Iterator[TopologySpec]:
    """Of a tree: with the same hosts."""
    if topology.kind == "graph":
        yield TopologySpec(hosts=len(topology.names))
    if topology.kind != "racks":
        return
    racks = topology.racks
    yield TopologySpec(hosts=sum(racks))
    yield replace(topology, pod=0)
    for i in range(len(racks) - 1):
        together = [*racks[:i], racks[i] + racks[i + 1], *racks[i + 2 :]]
        yield replace(topology, racks=together)
    for i in range(len(racks)):
        if racks[i] > 1:
            yield replace(topology, racks=[*racks[:i], racks[i] - 1, *racks[i + 1 :]])


def _with(scenario: Scenario, topology: TopologySpec) -> Scenario:
    """Faults of what is no longer there are none any more; hosts that are gone are the last one."""
    found = replace(scenario, topology=topology)
    built = found.build_topology()
    places = {*map(str, built.cables), *built.switches}
    faults = [
        fault
        for fault in scenario.fault
        if fault.what not in ("link_down", "link", "power_cycle") or fault.where in places
    ]
    jobs = [
        replace(job, hosts=[host if host in built.hosts else built.hosts[-1] for host in job.hosts])
        for job in scenario.job
    ]
    return replace(found, fault=faults, job=jobs)


def _smaller_jobs(job: JobSpec) -> Iterator[JobSpec]:
    for workers in (job.workers // 2, job.workers - 1):
        if workers >= 1:
            yield replace(job, workers=workers, hosts=job.hosts[:workers])
    for steps in (job.steps // 2, job.steps - 1):
        if steps >= 1:
            yield replace(job, steps=steps)
    tensors = job.tensors
    for i in range(len(tensors)):
        if len(tensors) > 1:
            yield replace(job, tensors=tensors[:i] + tensors[i + 1 :])
        for elems in (tensors[i].elems // 2, tensors[i].elems - 1):
            if elems >= 1:
                fewer = replace(tensors[i], elems=elems, count=1)
                yield replace(job, tensors=[*tensors[:i], fewer, *tensors[i + 1 :]])
    yield replace(job, straggler=StragglerSpec())
    yield replace(job, compute_ms=0.0)
    yield replace(job, at_ms=[0.0])


def _cleaner(link: LinkSpec) -> Iterator[LinkSpec]:
    usual = LinkSpec()
    yield LinkSpec(rate_gbit=link.rate_gbit, delay_us=link.delay_us)
    for name in (
        *("loss", "burst_from", "duplication", "reordering", "corruption", "jitter_us"),
        *("marking", "queue_kib", "delay_us", "rate_gbit"),
    ):
        yield replace(link, **{name: getattr(usual, name)})
