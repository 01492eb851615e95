"""Small cases in the virtual network, with the cores, P4 program and controller that ship.

The controller places the jobs by the policy; what a step takes is measured, and stands beside what
the flow-level model says of the same policy on the same network.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ina.controller.config import DEFAULT_JOB_SLOTS
from ina.controller.errors import RoutingError
from ina.controller.routing.bounds import cut_bound
from ina.controller.routing.demand import Demand
from ina.controller.routing.judge import judge
from ina.controller.routing.loads import loads_of
from ina.controller.routing.network import Network, hosts_of, network_of
from ina.controller.routing.plan import Plan
from ina.controller.routing.policies import policy
from ina.controller.routing.policy import Situation
from ina.controller.windows.uses import packet_bits
from ina.sim.placing import placed
from ina.sim.racks import joined
from ina.sim.routing.outcome import Outcome, refused
from ina.sim.run import Simulation
from ina.sim.scenario import Scenario

HOST_GBIT = 10.0
ELEMS, TENSORS, STEPS = 1 << 18, 4, 3
FAMILY = "shipped"


@dataclass(frozen=True)
class Run:
    """One scenario, for each policy."""

    name: str
    table: dict[str, Any]

    def scenario(self, placement: str) -> Scenario:
        """With the controller placing so."""
        table = {**self.table, "controller": {"placement": placement}}
        return msgspec.convert(table, Scenario)


def runs(quick: bool) -> Iterator[Run]:
    """Leaf-spines of nine hosts, with uplinks of a host's rate, of half of it, and one narrow; a
    fat-tree of 16 hosts with one job and with four."""
    three = [_job("job", 9, 3)]
    yield Run("2 spines, 3 leaves, uplinks 0.5, 1 job", _leaf_spine(HOST_GBIT / 2, three))
    if quick:
        return
    yield Run("2 spines, 3 leaves, uplinks 1, 1 job", _leaf_spine(HOST_GBIT, three))
    two = [_spread("one", range(3)), _spread("two", range(1, 3))]
    yield Run("2 spines, 3 leaves, uplinks 0.5, 2 jobs", _leaf_spine(HOST_GBIT / 2, two))
    yield Run("2 spines, 3 leaves, one uplink 0.2, 1 job", _one_narrow(0.2))
    yield Run("fat-tree k = 4, 1 job", _fat_tree([_job("job", 16, 8)]))
    jobs = [{**_job(f"job{it}", 4, 1), "hosts": [f"h{it + 1 + 4 * at}" for at in range(4)]}
            for it in range(4)]  # fmt: skip
    yield Run("fat-tree k = 4, 4 jobs", _fat_tree(jobs))


def _job(name: str, workers: int, racks: int) -> dict[str, Any]:
    tensors = [{"elems": ELEMS, "count": TENSORS}]
    return {"name": name, "workers": workers, "racks": racks, "steps": STEPS, "tensors": tensors}


def _spread(name: str, which: range) -> dict[str, Any]:
    """On some hosts of each of three leaves."""
    hosts = [f"h{3 * leaf + it + 1}" for leaf in range(3) for it in which]
    return {**_job(name, len(hosts), 1), "hosts": hosts}


def _table(topology: dict[str, Any], jobs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": "routing",
        "limit_s": 20,
        "topology": topology,
        "link": {"rate_gbit": HOST_GBIT, "delay_us": 1, "queue_kib": 4096},
        "congestion": {"algorithm": "fixed"},
        "job": jobs,
    }


def _leaf_spine(up_gbit: float, jobs: list[dict[str, Any]]) -> dict[str, Any]:
    shape = {"kind": "leaf-spine", "leaves": 3, "spines": 2, "hosts": 3, "above": "p4"}
    up = {"rate_gbit": up_gbit, "delay_us": 1, "queue_kib": 4096}
    return {**_table(shape, jobs), "link_up": up}


def _one_narrow(part: float) -> dict[str, Any]:
    """The first leaf's cable to the first spine has a part of a host's rate."""
    hosts = [f"h{it + 1}" for it in range(9)]
    cables: list[dict[str, Any]] = [
        {"one": host, "other": f"l{it // 3 + 1}"} for it, host in enumerate(hosts)
    ]
    for leaf in range(1, 4):
        for spine in range(1, 3):
            cable: dict[str, Any] = {"one": f"l{leaf}", "other": f"s{spine}"}
            if leaf == spine == 1:
                cable["link"] = {"rate_gbit": part * HOST_GBIT, "delay_us": 1, "queue_kib": 4096}
            cables.append(cable)
    switches = dict.fromkeys(["l1", "l2", "l3", "s1", "s2"], "p4")
    shape = {"kind": "graph", "names": hosts, "switches": switches, "cables": cables}
    return _table(shape, [{**_job("job", 9, 1), "hosts": hosts}])


def _fat_tree(jobs: list[dict[str, Any]]) -> dict[str, Any]:
    return _table({"kind": "fat-tree", "k": 4, "above": "p4"}, jobs)


def _one_by_one(network: Network, demands: Sequence[Demand], placement: str) -> Plan:
    """As jobs come to a controller: each has the others beside it that came before."""
    plan = Plan()
    for number, demand in enumerate(demands):
        others = loads_of(network, demands[:number], plan)
        found = policy(placement).plan(Situation(network, (demand,), others))
        plan = plan.with_job(demand.name, found.stripes[demand.name])
    return plan


def measure(run: Run, placement: str, seed: int = 1) -> Outcome:
    """A policy in the virtual network, and in the model."""
    scenario = run.scenario(placement)
    topology = scenario.build_topology()
    network = network_of(joined(topology))
    numbers = hosts_of(network)
    step_bytes = ELEMS * TENSORS / scenario.values * packet_bits(scenario.values) / 8
    demands = tuple(
        Demand(
            job.name,
            tuple(numbers[str(topology.addresses[host])] for host in job.hosts),
            step_bytes=step_bytes,
            slots=DEFAULT_JOB_SLOTS,
        )
        for job in placed(scenario.job, topology)
    )
    unit_s = step_bytes * 8 / (HOST_GBIT * 1e9)
    bound = cut_bound(network, demands).seconds / unit_s
    began_s = time.perf_counter()
    try:
        plan = _one_by_one(network, demands, placement)
    except RoutingError as error:
        return refused(FAMILY, run.name, placement, bound, str(error))
    plan_s = time.perf_counter() - began_s
    model = judge(network, demands, plan)
    report = Simulation(scenario, seed).run()
    measured = [it.step_mean_s / unit_s for it in report.jobs]
    return Outcome(
        FAMILY,
        run.name,
        placement,
        max(measured),
        bound,
        statistics.fmean(measured),
        float(model.loads.cables.sum()) / sum(it.step_bytes * len(it) for it in demands),
        statistics.fmean(len(stripes) for stripes in plan.stripes.values()),
        plan_s,
        model.limit,
        modelled=max(model.job_s.values()) / unit_s,
    )
