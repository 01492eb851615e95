"""Which hosts the ranks of a scenario's jobs are on, where it does not say so."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ina.sim.scenario import JobSpec
from ina.sim.topology import Topology


def placed(jobs: Sequence[JobSpec], topology: Topology) -> list[JobSpec]:
    """Each job as often as it has copies, ``NAME-1``, ``NAME-2`` ..., and each with its hosts.

    Jobs without hosts get those that follow, in the topology's order, all behind one switch: one
    that does not fit behind the rest of a switch begins at the next. After the last host comes
    the first, and a job with more ranks than there are hosts has several on one.
    """
    racks: dict[str, list[str]] = {}
    for host in topology.hosts:
        racks.setdefault(topology.switch_of(host), []).append(host)
    hosts_of = list(racks.values())
    rack, first = 0, 0
    found = []
    for spec, name in [(job, name) for job in jobs for name in job.names()]:
        hosts = spec.hosts
        if not hosts:
            if first > 0 and first + spec.workers > len(hosts_of[rack]):
                rack, first = (rack + 1) % len(hosts_of), 0
            there = hosts_of[rack]
            hosts = [there[(first + rank) % len(there)] for rank in range(spec.workers)]
            first += spec.workers
        found.append(replace(spec, name=name, copies=1, hosts=hosts))
    return found
