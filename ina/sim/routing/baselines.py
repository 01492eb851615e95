"""What policies are compared with: no aggregation, ATP with its server, one tree by ECMP. Pure."""

from __future__ import annotations

import numpy as np

from ina.controller.routing.candidates import candidates_of
from ina.controller.routing.demand import Demand
from ina.controller.routing.network import NetworkWays
from ina.controller.routing.plan import Plan, PlannedTree, Stripe, Way
from ina.controller.routing.policy import Situation
from ina.sim.routing.case import Setting


class NoAggregation:
    """Every worker sends to the server, as to a parameter server."""

    name = "none"

    def plan(self, situation: Situation) -> Plan:
        """As :class:`Policy` says."""
        ways = situation.ways
        return Plan(
            {
                it.name: (Stripe(1.0, _direct(ways, it, it.root(ways.network))),)
                for it in situation.demands
            }
        )


class Atp:
    """Tops of racks sum what comes in time, and the server's sums that once more; what is late goes
    to the server by itself, for no slot is kept for it (ATP, NSDI 2021)."""

    name = "atp"

    def __init__(self, case: Setting) -> None:
        self._case = case

    def plan(self, situation: Situation) -> Plan:
        """As :class:`Policy` says."""
        return Plan(
            {it.name: (Stripe(1.0, self._tree(situation.ways, it)),) for it in situation.demands}
        )

    def _tree(self, ways: NetworkWays, demand: Demand) -> PlannedTree:
        network, server = ways.network, demand.root(ways.network)
        late = self._case.late.get(demand.name, frozenset())
        top = ways.way(server, int(demand.places(network)[0]))[:2][-1]
        if server in network.host_places:  # results are made at a top of rack, there is no server
            top = server
        second = top if network.sums[top] else server
        first = np.zeros(len(demand), dtype=np.int64)
        up: dict[int, Way] = {}
        if second != server:
            up[second] = ways.way(second, server)
        by_way: dict[tuple[int, int], Way] = {}
        for rank, rack in enumerate(demand.places(network).tolist()):
            to = rack if network.sums[rack] else second
            if rank in late:
                to = server
            elif to not in (second, server):
                up[to] = ways.way(to, second)
            first[rank] = to
            by_way[rack, to] = ways.way(rack, to)
        used = {int(it) for it in first} | {way[-1] for way in up.values()}
        up = {node: way for node, way in up.items() if node in used}
        return PlannedTree(server, up, first, by_way)


class Ecmp:
    """One tree a job, drawn among those with the fewest cables: elephants pinned by a hash."""

    name = "ecmp"

    def plan(self, situation: Situation) -> Plan:
        """As :class:`Policy` says."""
        rng = np.random.default_rng(situation.seed)
        found = {}
        for demand in situation.demands:
            them = candidates_of(situation.ways, demand)
            found[demand.name] = (Stripe(1.0, them.tree(int(rng.integers(len(them))))),)
        return Plan(found)


def _direct(ways: NetworkWays, demand: Demand, server: int) -> PlannedTree:
    racks, _ = demand.racks(ways.network)
    by_way = {(int(rack), server): ways.way(int(rack), server) for rack in racks}
    return PlannedTree(server, {}, np.full(len(demand), server, dtype=np.int64), by_way)
