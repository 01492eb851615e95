"""``single``: one switch sums all of a job, all others forward."""

from __future__ import annotations

import numpy as np

from ina.controller.errors import RoutingError
from ina.controller.routing.demand import Demand
from ina.controller.routing.network import Ints, NetworkWays
from ina.controller.routing.plan import Plan, PlannedTree, Stripe
from ina.controller.routing.policies.nearest import common_ancestor
from ina.controller.routing.policy import Situation
from ina.fabric.ways import FAR


def root_of(ways: NetworkWays, demand: Demand, free: Ints) -> int:
    """The job's server; of a job without one the top of rack of rank 0, or the place nearest to it
    that sums, and has ``free`` slots for all of its lanes.

    Raises :class:`RoutingError`: there is none that all of its workers reach.
    """
    network = ways.network
    racks, _ = demand.racks(network)
    can = network.sums & (free >= demand.slots) & (ways.hops[racks] < FAR).all(axis=0)
    if demand.server is not None:
        if can[demand.server]:
            return demand.server
        raise RoutingError(
            f"job {demand.name!r}: its server {network.names[demand.server]} is not reached, or has"
            f" no {demand.slots} free slots"
        )
    if not can.any():
        raise RoutingError(
            f"job {demand.name!r}: no switch that sums, and has {demand.slots} free slots, is"
            " joined to all of its workers"
        )
    near = np.where(can, ways.hops[demand.places(network)[0]], FAR)
    return int(near.argmin())


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
