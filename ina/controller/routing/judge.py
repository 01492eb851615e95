"""Whether a plan can be carried out, and how good it is: one judge for every policy. Pure.

All policies share one objective. When every running job sends the gradients of a step at once, the
step of all of them is over when the slowest cable, place or host is through with its bytes; that
time is to be small (:attr:`Judgement.step_s`). It does not depend on how jobs share what they have
in common, so a bound of it is a bound for every congestion control.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf

import numpy as np

from ina.controller.routing.demand import Demand
from ina.controller.routing.loads import Loads, loads_of_job, no_loads
from ina.controller.routing.network import Floats, Network
from ina.controller.routing.plan import Plan, PlannedTree, Way

_SHARE_ERROR = 1e-9


@dataclass(frozen=True, eq=False)
class Judgement:
    """Of a plan that can be carried out."""

    network: Network
    demands: tuple[Demand, ...]
    by_job: Mapping[str, Loads]

    @cached_property
    def loads(self) -> Loads:
        """Of all jobs together."""
        return sum(self.by_job.values(), no_loads(self.network))

    @cached_property
    def step_s(self) -> float:
        """Seconds of communication in which every job has done a step, all begun at once."""
        return self.loads.step_s(self.network)

    @cached_property
    def limit(self) -> str:
        """What takes the longest, for people: ``leaf1-spine``, ``spine``, ``10.0.0.1``."""
        cables, places, hosts = self.loads.seconds(self.network)
        longest = [float(it.max()) if it.size else 0.0 for it in (cables, places, hosts)]
        if max(longest) == 0:
            return ""
        kind = longest.index(max(longest))
        if kind == 0:
            a, b = self.network.ends[int(cables.argmax())]
            return f"{self.network.names[a]}-{self.network.names[b]}"
        if kind == 1:
            return self.network.names[int(places.argmax())]
        return self.network.host_names[int(hosts.argmax())]

    @cached_property
    def job_s(self) -> Mapping[str, float]:
        """By job, seconds of a step's communication where rates are max-min fair among jobs."""
        rates = fair_rates(self.seconds_a_byte())
        return {
            it.name: it.step_bytes / float(rate)
            for it, rate in zip(self.demands, rates, strict=True)
        }

    def seconds_a_byte(self) -> Floats:
        """(jobs, resources): of a worker's rate, on what any of them needs."""
        rows = [
            np.concatenate(self.by_job[it.name].seconds(self.network)) / it.step_bytes
            for it in self.demands
        ]
        if not rows:
            return np.zeros((0, 0))
        use: Floats = np.array(rows)
        return np.unique(use[:, use.any(axis=0)], axis=1)


def fair_rates(use: Floats) -> Floats:
    """(jobs,): bytes a second of a worker of each; inf of one that needs nothing.

    Progressive filling: all jobs' rates grow alike, until something that a job needs is full; that
    one's rate stays, the others' go on. ``use``: as :meth:`Judgement.seconds_a_byte`.
    """
    rates, grows = np.zeros(len(use)), use.any(axis=1)
    rates[~grows] = inf
    room = np.ones(use.shape[1])
    while grows.any():
        demand = use[grows].sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            more = np.where(demand > 0, room / demand, inf)
        step = float(more.min())
        rates[grows] += step
        room = np.maximum(room - step * demand, 0.0)
        full = more <= step * (1 + 1e-12)
        grows &= ~(use[:, full] > 0).any(axis=1)
    return rates


def judge(network: Network, demands: Sequence[Demand], plan: Plan) -> Judgement:
    """Raises :class:`ValueError`: it cannot be carried out, and why."""
    for problem in problems(network, demands, plan):
        raise ValueError(problem)
    by_job = {it.name: loads_of_job(network, it, plan.stripes[it.name]) for it in demands}
    return Judgement(network, tuple(demands), by_job)


def problems(network: Network, demands: Sequence[Demand], plan: Plan) -> Iterator[str]:
    """Why a plan cannot be carried out. Every worker must be summed once in each stripe, over
    cables that are up, by places that sum, in trees that the data plane can have."""
    slots = np.zeros(len(network), dtype=np.int64)
    for demand in demands:
        stripes = plan.stripes.get(demand.name, ())
        total = sum(it.share for it in stripes)
        if any(it.share <= 0 for it in stripes) or abs(total - 1) > _SHARE_ERROR:
            yield f"job {demand.name!r}: its stripes' shares are {total:g} together, not 1"
            continue
        found = False
        for stripe in stripes:
            for problem in _tree_problems(network, demand, stripe.tree):
                yield f"job {demand.name!r}: {problem}"
                found = True
        if not found:
            slots += loads_of_job(network, demand, stripes).slots
    for place in np.flatnonzero(slots > network.slots):
        yield f"{network.names[place]}: {slots[place]} slots of {network.slots[place]}"


def _tree_problems(network: Network, demand: Demand, tree: PlannedTree) -> Iterator[str]:
    name = network.names
    nodes = set(tree.nodes)
    if tree.root in tree.up:
        yield f"the root {name[tree.root]} has a parent"
        return
    for node in sorted(nodes):
        if not network.sums[node]:
            yield f"{name[node]} does not sum"
    for child, way in tree.up.items():
        yield from _way_problems(network, way, child, None)
        if way[-1] not in nodes:
            yield f"the parent {name[way[-1]]} of {name[child]} is no node"
            return
    try:
        deepest = max(tree.level(node) for node in nodes)
    except ValueError as error:
        yield str(error)
        return
    if deepest > network.most_levels:
        yield f"{deepest} levels of nodes: at most {network.most_levels}"
    if len(tree.first) != len(demand):
        yield f"its tree has {len(tree.first)} workers of {len(demand)}"
        return
    places = demand.places(network)
    for rack, node in {(int(a), int(b)) for a, b in zip(places, tree.first, strict=True)}:
        if node not in nodes:
            yield f"workers behind {name[rack]} send to {name[node]}, which is no node"
        elif (rack, node) not in tree.ways:
            yield f"no way leads from {name[rack]} to {name[node]}"
        else:
            yield from _way_problems(network, tree.ways[rack, node], rack, node)
    for node, count in tree.children.items():
        if count > network.most_children:
            yield f"{name[node]} has {count} children: at most {network.most_children}"
        if count == 0:
            yield f"{name[node]} has no children"


def _way_problems(network: Network, way: Way, start: int, end: int | None) -> Iterator[str]:
    if way[0] != start or (end is not None and way[-1] != end) or len(set(way)) != len(way):
        yield f"no way from {network.names[start]}: {[network.names[it] for it in way]}"
        return
    for a, b in pairwise(way):
        if (a, b) not in network.cable_between:
            yield f"no cable that is up joins {network.names[a]} and {network.names[b]}"
