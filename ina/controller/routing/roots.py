"""Where a job's results are made, for policies that know of one place for that. Pure."""

from __future__ import annotations

import numpy as np

from ina.controller.routing.demand import Demand
from ina.controller.routing.errors import RoutingError
from ina.controller.routing.network import Ints
from ina.controller.routing.ways import NetworkWays
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
