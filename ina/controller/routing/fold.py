"""A network with places that are alike as one, for linear programs of large ones. Pure.

In a tree of switches with several tops (leaf-spine, fat-tree) the switches of one level of one pod
are alike, and so are all cores. As one place, with the sum of what they can do, they leave a tree,
in which one way joins each two places. Merging can only make things easier, whatever is merged and
whatever has failed, so a bound of the folded network is one of the network.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ina.controller.routing.bounds import parts_of
from ina.controller.routing.demand import Demand
from ina.controller.routing.loads import Loads
from ina.controller.routing.network import NO_LIMIT, Ints, Network


@dataclass(frozen=True, eq=False)
class Fold:
    """Of a network."""

    network: Network
    """The folded one: a forest."""
    class_of: Ints
    """(places of the network,): the place of the folded one that each is of."""
    cable_of: Ints
    """(cables of the network,): likewise; -1: it is inside of a place, or down."""

    @property
    def members(self) -> Ints:
        """(places of the folded network,): how many each stands for."""
        counts: Ints = np.bincount(self.class_of, minlength=len(self.network))
        return counts

    def demand(self, demand: Demand) -> Demand:
        """In the folded network; hosts keep their numbers."""
        server = demand.server
        return demand if server is None else replace(demand, server=int(self.class_of[server]))

    def loads(self, loads: Loads) -> Loads:
        """In the folded network."""
        cables = np.zeros(len(self.network.rates))
        seen = self.cable_of >= 0
        np.add.at(cables, self.cable_of[seen], loads.cables[seen])
        places = np.zeros(len(self.network))
        np.add.at(places, self.class_of, loads.places)
        slots = np.zeros(len(self.network), dtype=np.int64)
        np.add.at(slots, self.class_of, loads.slots)
        return Loads(cables, places, slots, loads.hosts)


def fold_of(network: Network) -> Fold | None:
    """None: what it folds to is no forest, as where tops of racks are joined to each other."""
    class_of = _classes(network)
    count = int(class_of.max(initial=-1)) + 1
    ends = np.sort(class_of[network.ends], axis=1)
    outside = network.is_up & (ends[:, 0] != ends[:, 1])
    pairs, inverse = np.unique(ends[outside] @ [count, 1], return_inverse=True)
    cable_of = np.full(len(network.rates), -1, dtype=np.int64)
    cable_of[outside] = inverse
    rates = np.bincount(inverse, weights=network.rates[outside], minlength=len(pairs))
    sums = np.zeros(count, dtype=np.bool_)
    sums[class_of[network.sums]] = True
    processing, slots = np.zeros(count), np.zeros(count, dtype=np.int64)
    np.add.at(processing, class_of[network.sums], network.processing[network.sums])
    np.add.at(slots, class_of[network.sums], network.slots[network.sums])
    folded = replace(
        network,
        names=_names(network, class_of, count),
        ends=np.stack(np.divmod(pairs, max(count, 1)), axis=1).astype(np.int64),
        rates=rates.astype(np.float64),
        sums=sums,
        processing=processing,
        slots=np.minimum(slots, NO_LIMIT),
        host_places=class_of[network.host_places],
    )
    return Fold(folded, class_of, cable_of) if _is_forest(folded) else None


def _classes(network: Network) -> Ints:
    """By place its class: tops of racks, and places of one cable alone; others by how far from a
    rack they are and by the part of the network, of what is nearer or as near, that they are in."""
    count = len(network)
    keys = np.stack([np.full(count, -1), np.arange(count)], axis=1)  # alone
    neighbours = np.zeros(count, dtype=np.int64)
    between = np.unique(np.sort(network.ends, axis=1), axis=0)
    np.add.at(neighbours, between.ravel(), 1)
    is_rack = np.zeros(count, dtype=np.bool_)
    is_rack[network.host_places] = True
    waiting = ~is_rack & (neighbours > 1)
    for distance, parts in enumerate(parts_of(network)):
        found = waiting & (parts >= 0)
        keys[found] = np.stack([np.full(found.sum(), distance), parts[found]], axis=1)
        waiting &= ~found
    classes: Ints = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
    return classes


def _names(network: Network, class_of: Ints, count: int) -> tuple[str, ...]:
    """That of the first, with how many more; those are unique, as names of places are."""
    first = np.unique(class_of, return_index=True)[1]
    members = np.bincount(class_of, minlength=count)
    return tuple(
        network.names[int(it)] + (f"+{members[number] - 1}" if members[number] > 1 else "")
        for number, it in enumerate(first)
    )


def _is_forest(network: Network) -> bool:
    """As many cables as joining takes: each one joins two parts that nothing joined before."""
    leader = list(range(len(network)))

    def find(place: int) -> int:
        while leader[place] != place:
            leader[place] = leader[leader[place]]
            place = leader[place]
        return place

    for a, b in network.ends:
        one, other = find(int(a)), find(int(b))
        if one == other:
            return False
        leader[one] = other
    return True
