"""A bound on a drawn scenario's work, so that no seed takes a hundred times what others take."""

from __future__ import annotations

import math

from msgspec.structs import replace

from ina.sim.scenario import JobSpec, Scenario

MOST_HOPS = 60_000
"""Of packets of jobs, over cables, where none is lost: below a second of a core."""
GROWTH = 1.04
"""Of the time between an order and the next: a job may wait for half a minute, so ten thousand
would come to one that waits."""
WORKERS_A_LEASE_S = 8
"""Of all jobs; heartbeats are several a lease and worker, for a minute or two where jobs wait."""
MOST_LEASE_S = 5.0
_LEAST_STEPS = 2
_SWITCHES_A_WAY = 3
"""Between two hosts, at most on average, where there are several."""


def bounded(scenario: Scenario) -> Scenario:
    """The same, with orders that become seldom, longer leases where workers are many, and fewer
    steps and tensors of less where ``scenario`` has more packets than MOST_HOPS."""
    faults = [
        replace(fault, every_growth=GROWTH) if fault.every_ms > 0 else fault
        for fault in scenario.fault
    ]
    cables = 2 * (1 if scenario.topology.kind == "star" else _SWITCHES_A_WAY)
    jobs = scenario.job
    while (over := sum(hops(job, scenario.values, cables) for job in jobs) / MOST_HOPS) > 1:
        fewer = [_fewer(job, scenario.values, over) for job in jobs]
        if fewer == jobs:
            break
        jobs = fewer
    lease_s = max(scenario.controller.lease_s, sum(job.workers for job in jobs) / WORKERS_A_LEASE_S)
    control = replace(scenario.controller, lease_s=min(lease_s, MOST_LEASE_S))
    return replace(scenario, fault=faults, job=jobs, controller=control)


def hops(job: JobSpec, values: int, cables: int) -> int:
    """Of its packets, each over so many cables to the switch and back; those sent again are extra.

    Without exponents, which are an eighth more, but for the smallest tensors.
    """
    packets = sum(it.count * -(-it.elems // values) for it in job.tensors)
    return job.workers * job.steps * packets * cables


def _fewer(job: JobSpec, values: int, over: float) -> JobSpec:
    """Fewer steps first: whatever goes round in it has done so in two."""
    steps = max(min(job.steps, _LEAST_STEPS), math.floor(job.steps / over))
    if steps < job.steps:
        return replace(job, steps=steps)
    # No less than three windows, which is what a window can be seen in.
    least = 3 * max(1, job.slots // 2) * values
    tensors = [
        replace(it, elems=max(min(it.elems, least), round(it.elems / over))) for it in job.tensors
    ]
    return replace(job, tensors=tensors)
