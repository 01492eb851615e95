"""``single``: one switch sums all of a job, all others forward."""

from __future__ import annotations

import numpy as np

from ina.controller.routing.demand import Demand
from ina.controller.routing.errors import RoutingError
from ina.controller.routing.network import Ints
from ina.controller.routing.plan import Plan, PlannedTree, Stripe
from ina.controller.routing.policies.nearest import common_ancestor
from ina.controller.routing.policy import Situation
from ina.controller.routing.ways import NetworkWays


class Single:
    """One node a job: the common ancestor that ``nearest`` has as its root. All workers send to it,
    so a job has at most as many as a switch has bits in its bitmap.

    Guarantees slots on one switch a job, the fewest there can be; the cables of a rack carry a copy
    of every worker.
    """

    name = "single"

    def plan(self, situation: Situation) -> Plan:
        """As :class:`Policy` says."""
        free, found = situation.network.slots.copy(), {}
        for demand in situation.demands:
            root = common_ancestor(situation.ways, demand)
            found[demand.name] = (Stripe(1.0, star(situation.ways, demand, root, free)),)
            free[root] -= demand.slots
        return Plan(found)


def star(ways: NetworkWays, demand: Demand, root: int, free: Ints) -> PlannedTree:
    """All workers send to the root. Raises :class:`RoutingError`: it cannot have them."""
    network = ways.network
    if len(demand) > network.most_children:
        raise RoutingError(
            f"job {demand.name!r}: {len(demand)} workers at {network.names[root]}, which sums at"
            f" most {network.most_children}"
        )
    if free[root] < demand.slots:
        raise RoutingError(
            f"job {demand.name!r}: {network.names[root]} has {free[root]} free slots of"
            f" {demand.slots}"
        )
    racks, _ = demand.racks(network)
    ways_in = {(int(rack), root): ways.way(int(rack), root) for rack in racks}
    return PlannedTree(root, {}, np.full(len(demand), root, dtype=np.int64), ways_in)
