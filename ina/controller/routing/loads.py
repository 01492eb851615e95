"""What a plan loads: bytes a step on cables, at places and on hosts' cables; slots. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf

import numpy as np

from ina.controller.routing.demand import Demand
from ina.controller.routing.network import Floats, Ints, Network
from ina.controller.routing.plan import Plan, Stripe, Way


@dataclass(frozen=True, eq=False)
class Loads:
    """Of one job or of several."""

    cables: Floats
    """(cables,): bytes a step each way."""
    places: Floats
    """(places,): bytes of contributions a step that are summed there."""
    slots: Ints
    """(places,)"""
    hosts: Floats
    """(hosts,): bytes a step each way."""

    def __add__(self, other: Loads) -> Loads:
        return Loads(
            self.cables + other.cables,
            self.places + other.places,
            self.slots + other.slots,
            self.hosts + other.hosts,
        )

    def seconds(self, network: Network) -> tuple[Floats, Floats, Floats]:
        """Of a step, at each cable, place and host: how long its bytes take there."""
        return (
            _quotient(self.cables, network.rates),
            _quotient(self.places, network.processing),
            _quotient(self.hosts, network.host_rates),
        )

    def step_s(self, network: Network) -> float:
        """The longest of :meth:`seconds`: no step of all jobs together is over before."""
        return max((float(it.max()) for it in self.seconds(network) if it.size), default=0.0)


def no_loads(network: Network) -> Loads:
    """Of no job."""
    return Loads(
        np.zeros(len(network.rates)),
        np.zeros(len(network)),
        np.zeros(len(network), dtype=np.int64),
        np.zeros(len(network.host_names)),
    )


def loads_of(network: Network, demands: Iterable[Demand], plan: Plan) -> Loads:
    """Of all of them together. Raises :class:`KeyError`: a way takes a cable that is not up."""
    total = no_loads(network)
    for demand in demands:
        total += loads_of_job(network, demand, plan.stripes[demand.name])
    return total


def loads_of_job(network: Network, demand: Demand, stripes: Sequence[Stripe]) -> Loads:
    """Raises :class:`KeyError`: a way takes a cable that is not up."""
    found = no_loads(network)
    places = demand.places(network)
    np.add.at(found.hosts, np.array(demand.hosts, dtype=np.int64), demand.step_bytes)
    taken = dict.fromkeys(range(0), 0.0)
    for stripe in stripes:
        tree, size = stripe.tree, stripe.share * demand.step_bytes
        for way in tree.up.values():
            _add(found.cables, network.cable_between, way, size)
        pairs = places * len(network) + tree.first
        for pair, count in zip(*np.unique(pairs, return_counts=True), strict=True):
            way = tree.ways[divmod(int(pair), len(network))]
            _add(found.cables, network.cable_between, way, size * int(count))
        for node, count in tree.children.items():
            found.places[node] += size * count
            taken[node] = taken.get(node, 0.0) + stripe.share
    for node, share in taken.items():
        found.slots[node] += slots_for(demand, share)
    return found


def slots_for(demand: Demand, share: float) -> int:
    """That a part of its lanes takes at a place: an even number."""
    return 2 * ceil(demand.slots * share / 2 - 1e-9)


def _add(cables: Floats, between: Mapping[tuple[int, int], int], way: Way, size: float) -> None:
    for pair in pairwise(way):
        cables[between[pair]] += size


def _quotient(load: Floats, rates: Floats) -> Floats:
    """0 where there is no load, whatever the rate."""
    rates = np.where(load > 0, rates, inf)
    with np.errstate(divide="ignore"):
        found: Floats = load / rates
    return found
