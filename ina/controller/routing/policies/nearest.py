"""``nearest``: as SwitchML and ATP do; top of rack first, then the common ancestor."""

from __future__ import annotations

import numpy as np

from ina.controller.errors import RoutingError
from ina.controller.routing.candidates import candidates_at
from ina.controller.routing.demand import Demand
from ina.controller.routing.network import NetworkWays
from ina.controller.routing.plan import Plan, Stripe
from ina.controller.routing.policy import Situation
from ina.fabric.ways import FAR


class Nearest:
    """One tree a job, whatever others load. Its root is the place with the fewest cables to all
    racks that have workers; of several the one whose farthest rack is nearest, then the first.

    Guarantees the fewest hops of any single tree of shortest ways, and nothing about loads: jobs
    that span the network meet at the same root.
    """

    name = "nearest"

    def plan(self, situation: Situation) -> Plan:
        """As :class:`Policy` says."""
        free, found = situation.network.slots.copy(), {}
        for demand in situation.demands:
            it = candidates_at(
                situation.ways, demand, np.array([common_ancestor(situation.ways, demand)]), free
            )
            tree = it.tree(0)
            found[demand.name] = (Stripe(1.0, tree),)
            free[list(tree.nodes)] -= demand.slots
        return Plan(found)


def common_ancestor(ways: NetworkWays, demand: Demand) -> int:
    """Raises :class:`RoutingError`: no place that sums is joined to all racks."""
    racks, _ = demand.racks(ways.network)
    away = ways.hops[racks].astype(np.int64)
    reached = (away < FAR).all(axis=0) & ways.network.sums
    if not reached.any():
        raise RoutingError(f"job {demand.name!r}: {_lost(ways, demand)}")
    order = np.lexsort((np.arange(len(ways.network)), away.max(axis=0), away.sum(axis=0)))
    return int(order[reached[order]][0])


def _lost(ways: NetworkWays, demand: Demand) -> str:
    network = ways.network
    racks, _ = demand.racks(network)
    apart = racks[ways.hops[racks[0], racks] >= FAR]
    if len(apart):
        return f"no path of links joins {network.names[racks[0]]} and {network.names[apart[0]]}"
    return "no switch that sums is joined to all of its workers"
