"""Trees of switches for the fuzzer: the jobs of a star's scenario, over racks."""

from __future__ import annotations

import random
from itertools import pairwise

from msgspec.structs import replace

from ina.protocol.spec import MAX_LEVELS
from ina.sim.racks import joined
from ina.sim.scenario import CableSpec, FaultSpec, Scenario, TopologySpec
from ina.sim.topology import Topology

_MOST_RACKS = 8


def over_racks(rng: random.Random, scenario: Scenario) -> Scenario:
    """The same hosts with the same jobs, of a star, behind several switches.

    Mostly racks of unequal sizes with one or two levels above them; else switches that are joined
    as it comes, with hosts at any of them, and circles. Faults of links and switches may be any's.
    """
    hosts = scenario.topology.hosts
    drawn = _racks(rng, hosts) if rng.random() < 0.7 else _graph(rng, hosts)
    scenario = replace(scenario, topology=drawn)
    topology = scenario.build_topology()
    faults = [_anywhere(rng, fault, topology) for fault in scenario.fault]
    return replace(scenario, fault=faults)


def _racks(rng: random.Random, hosts: int) -> TopologySpec:
    count = rng.randint(1, min(_MOST_RACKS, hosts))
    cuts = [0, *sorted(rng.sample(range(1, hosts), count - 1)), hosts]
    sizes = [end - start for start, end in pairwise(cuts)]
    return TopologySpec(kind="racks", racks=sizes, pod=rng.choice((0, 0, 1, 2, 3)))


def _graph(rng: random.Random, hosts: int) -> TopologySpec:
    """No two switches are farther apart than a tree may be deep."""
    names = [f"h{i + 1}" for i in range(hosts)]
    while True:
        switches = [f"s{i + 1}" for i in range(rng.randint(2, _MOST_RACKS))]
        cables = [CableSpec(one=name, other=rng.choice(switches)) for name in names]
        cables += [
            CableSpec(one=name, other=rng.choice(switches[:i]))
            for i, name in enumerate(switches[1:], 1)
        ]
        for _ in range(rng.choice((0, 0, 1, 2))):
            one, other = rng.sample(switches, 2)
            cables.append(CableSpec(one=one, other=other))
        spec = TopologySpec(
            kind="graph", names=names, switches=dict.fromkeys(switches, "p4"), cables=cables
        )
        fabric = joined(spec.build(Scenario().link, None, None))
        if all((fabric.hops(a, b) or 0) < MAX_LEVELS for a in switches for b in switches):
            return spec


def _anywhere(rng: random.Random, fault: FaultSpec, topology: Topology) -> FaultSpec:
    if fault.what == "link_down":
        return replace(fault, where=str(rng.choice(topology.cables)))
    if fault.what == "power_cycle":
        return replace(fault, where=rng.choice(list(topology.switches)))
    return fault
