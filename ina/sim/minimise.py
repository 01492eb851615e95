"""The smallest scenario on which a violation still shows: with less of everything, one at a time.

A change is kept if the same kind of violation comes again with the same seed. Links are made clean,
jobs, faults, workers, steps and tensors taken away, until nothing more can be, or time is up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from ina import modes
from ina.p4 import names
from ina.p4.builds import builds_of
from ina.sim.errors import ScenarioError
from ina.sim.reading import check
from ina.sim.scenario import (
    ControllerSpec,
    FaultSpec,
    HostSpec,
    JobSpec,
    LinkSpec,
    Scenario,
    StragglerSpec,
    SwitchSpec,
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
            if smaller != scenario and _can_be(smaller) and fails(smaller):
                scenario, found = smaller, True
                break
    return scenario


def _can_be(scenario: Scenario) -> bool:
    """Else jobs would wait for ever, for another reason than in what was found."""
    try:
        check(scenario)
    except ScenarioError:
        return False
    return True


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """What to try, what saves most first."""
    jobs, faults = scenario.job, scenario.fault
    for i in range(len(jobs)):
        rest = [fault for fault in faults if fault.where.partition("/")[0] != jobs[i].name]
        if len(jobs) > 1:
            fewer = jobs[:i] + jobs[i + 1 :]
            others = [one for one in scenario.aggregator if one.job != jobs[i].name]
            yield replace(scenario, job=fewer, fault=rest, aggregator=others)
    yield from _less_shared(scenario)
    yield from _plainer(scenario)
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
    for i, one in enumerate(scenario.aggregator):
        if one.link is not None:
            ends = [*scenario.aggregator]
            ends[i] = replace(one, link=None)
            yield replace(scenario, aggregator=ends)
    yield replace(scenario, host=HostSpec())
    yield replace(scenario, multicast=False)
    yield replace(scenario, ecn_packets=0)
    yield replace(scenario, congestion={})
    lease_s = scenario.controller.lease_s
    control = scenario.controller
    usual = ControllerSpec(lease_s=lease_s, sizing=control.sizing, quotas=control.quotas)
    yield replace(scenario, controller=usual)
    yield replace(scenario, controller=replace(control, sizing="fixed"))
    yield replace(scenario, values=min(builds_of(scenario.switch.mode)))


def _less_shared(scenario: Scenario) -> Iterator[Scenario]:
    """Fewer jobs that share slots, with less around them."""
    jobs, ends = scenario.job, scenario.aggregator
    plain = [replace(job, mode=names.DEFAULT_MODE, priority=0, tenant="") for job in jobs]
    control = replace(scenario.controller, quotas={})
    if modes.of(scenario.switch.mode).needs_aggregator:
        bare = _without(scenario, {one.name for one in ends})
        faults = _unchanged(bare)
        yield replace(bare, job=plain, switch=SwitchSpec(), controller=control, fault=faults)
    unranked = [replace(job, priority=0, tenant="") for job in jobs]
    yield replace(scenario, job=unranked, controller=control)
    for i, job in enumerate(jobs):
        if modes.of(job.mode).needs_aggregator:
            others = _without(scenario, {one.name for one in ends if one.job == job.name})
            yield replace(
                others, job=[*jobs[:i], replace(job, mode=names.DEFAULT_MODE), *jobs[i + 1 :]]
            )
    for one in ends:
        if len(ends) > 1:
            yield _without(scenario, {one.name})


def _plainer(scenario: Scenario) -> Iterator[Scenario]:
    """All jobs, or one, as they would be without blocks that are skipped, and without NICs."""
    program, jobs = scenario.switch.mode, scenario.job
    if program == names.DEFAULT_MODE or modes.of(program).needs_aggregator:
        return
    plain = [replace(job, mode=names.DEFAULT_MODE) for job in jobs]
    builds = builds_of(names.DEFAULT_MODE)
    values = scenario.values if scenario.values in builds else min(builds)
    yield replace(
        scenario, job=plain, switch=SwitchSpec(), values=values, fault=_unchanged(scenario)
    )
    for i, job in enumerate(jobs):
        if len(jobs) > 1 and job.mode != names.DEFAULT_MODE:
            yield replace(scenario, job=[*jobs[:i], plain[i], *jobs[i + 1 :]])


def _unchanged(scenario: Scenario) -> list[FaultSpec]:
    """Its faults, without changes to modes of other programs."""
    return [fault for fault in scenario.fault if fault.mode in ("", names.DEFAULT_MODE)]


def _without(scenario: Scenario, names: set[str]) -> Scenario:
    """With these aggregators go the faults that are theirs."""
    ends = [one for one in scenario.aggregator if one.name not in names]
    faults = [
        fault
        for fault in scenario.fault
        if names.isdisjoint(fault.where.replace(">", "-").split("-")) and fault.where not in names
    ]
    return replace(scenario, aggregator=ends, fault=faults)


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
    switches = replace(scenario, topology=topology, aggregator=[]).build_topology().of_kind("p4")
    ends = [
        one if one.switch in switches else replace(one, switch=switches[-1])
        for one in scenario.aggregator
    ]
    roots = [name for name in scenario.switch.aggregators if name in switches]
    if scenario.switch.aggregators and not roots:
        roots = switches[-1:]
    own = replace(scenario.switch, aggregators=roots)
    found = replace(scenario, topology=topology, aggregator=ends, switch=own)
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
            some = [
                it if it.root is None else replace(it, root=min(it.root, workers - 1))
                for it in job.tensors
            ]
            yield replace(job, workers=workers, hosts=job.hosts[:workers], tensors=some)
    for steps in (job.steps // 2, job.steps - 1):
        if steps >= 1:
            yield replace(job, steps=steps)
    tensors = job.tensors
    for i in range(len(tensors)):
        if len(tensors) > 1:
            yield replace(job, tensors=tensors[:i] + tensors[i + 1 :])
        if tensors[i].kind != "all_reduce":
            summed = replace(tensors[i], kind="all_reduce", root=None)
            yield replace(job, tensors=[*tensors[:i], summed, *tensors[i + 1 :]])
        if tensors[i].root is not None:
            to_all = replace(tensors[i], root=None)
            yield replace(job, tensors=[*tensors[:i], to_all, *tensors[i + 1 :]])
        if tensors[i].density is not None:
            dense = replace(tensors[i], density=None)
            yield replace(job, tensors=[*tensors[:i], dense, *tensors[i + 1 :]])
        if tensors[i].zeros > 0:
            full = replace(tensors[i], zeros=0.0)
            yield replace(job, tensors=[*tensors[:i], full, *tensors[i + 1 :]])
        if tensors[i].wire != "32":
            whole = replace(tensors[i], wire="32")
            yield replace(job, tensors=[*tensors[:i], whole, *tensors[i + 1 :]])
        for elems in (tensors[i].elems // 2, tensors[i].elems - 1):
            if elems >= 1:
                fewer = replace(tensors[i], elems=elems, count=1)
                yield replace(job, tensors=[*tensors[:i], fewer, *tensors[i + 1 :]])
    yield replace(job, hook="")
    yield replace(job, straggler=StragglerSpec())
    yield replace(job, compute_ms=0.0)
    yield replace(job, wraps_after=0)
    yield replace(job, at_ms=[0.0])


def _cleaner(link: LinkSpec) -> Iterator[LinkSpec]:
    usual = LinkSpec()
    yield LinkSpec(rate_gbit=link.rate_gbit, delay_us=link.delay_us)
    for name in (
        *("loss", "burst_from", "duplication", "reordering", "corruption", "jitter_us"),
        *("marking", "queue_kib", "delay_us", "rate_gbit"),
    ):
        yield replace(link, **{name: getattr(usual, name)})
