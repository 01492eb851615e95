"""Trees whose every way is one that frames take by themselves, found by a plain search. Pure.

Trees of shortest ways (:mod:`ina.controller.routing.candidates`) have a node at each place on the
way that sums, which may be more levels than the data plane has; and a way around what is down needs
a node at each switch on it. These have nodes only where a way ends that frames still take. So where
any tree is left, one of these is; they may load cables more than others do.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ina.controller.routing.demand import Demand
from ina.controller.routing.network import Bools, Ints, Network, NetworkWays
from ina.controller.routing.plan import PlannedTree, Way
from ina.fabric.ways import FAR


def forwarded_trees(
    ways: NetworkWays, demand: Demand, sums: Bools, *, most: int = 1
) -> list[PlannedTree]:
    """Up to ``most``, each with a root of its own, the nearest to all racks first.

    ``sums``: (places,), which may be nodes. Empty: there is none.
    """
    search = _Search(ways, demand, sums)
    may = demand.may_be_root(sums)
    away = ways.hops[np.ix_(search.racks, may)].sum(axis=0, dtype=np.int64)
    found = []
    for root in may[np.argsort(away, kind="stable")].tolist():
        if (tree := search.tree(root)) is not None:
            found.append(tree)
        if len(found) == most:
            break
    return found


class _Search:
    def __init__(self, ways: NetworkWays, demand: Demand, sums: Bools) -> None:
        self._ways, self._demand, self._sums = ways, demand, sums
        self._network = ways.network
        self.racks, self._counts = demand.racks(ways.network)
        self._reached = _reached(ways)

    def tree(self, root: int) -> PlannedTree | None:
        """With this root; None: not all racks get there."""
        depth = self._depths(root)
        nodes = {root: 0}
        """By node: its children so far."""
        up: dict[int, Way] = {}
        first: dict[int, int] = {}
        for rack, count in zip(self.racks.tolist(), self._counts.tolist(), strict=True):
            for node in self._first_nodes(rack, depth, nodes):
                if self._join(node, depth, nodes, up, count):
                    first[rack] = node
                    break
            else:
                return None
        places = self._demand.places(self._network)
        ways = {(rack, node): self._way(rack, node) for rack, node in first.items()}
        return PlannedTree(root, up, np.array([first[it] for it in places.tolist()]), ways)

    def _depths(self, root: int) -> Ints:
        """(places,): below the root, as near to it as can be; -1: it can be no node."""
        depth = np.full(len(self._network), -1, dtype=np.int64)
        depth[root] = 0
        for level in range(1, self._demand.most_levels(self._network)):
            above = depth == level - 1
            next_ones = (depth < 0) & self._sums & self._reached[:, above].any(axis=1)
            if not next_ones.any():
                break
            depth[next_ones] = level
        return depth

    def _first_nodes(self, rack: int, depth: Ints, nodes: dict[int, int]) -> Sequence[int]:
        """Where workers of a rack may send, their top of rack first, then nodes that are."""
        may = np.flatnonzero((depth >= 0) & self._reached[rack])
        return sorted(
            may.tolist(), key=lambda it: (it != rack, it not in nodes, self._ways.hops[rack, it])
        )

    def _join(
        self, node: int, depth: Ints, nodes: dict[int, int], up: dict[int, Way], count: int
    ) -> bool:
        """Gives a node so many children more, and a way to the root if it has none yet."""
        most = self._network.most_children
        if nodes.get(node, 0) + count > most:
            return False
        if node not in nodes:
            above = np.flatnonzero((depth == depth[node] - 1) & self._reached[node])
            parents = sorted(
                above.tolist(), key=lambda it: (it not in nodes, self._ways.hops[node, it])
            )
            parent = next((it for it in parents if self._join(it, depth, nodes, up, 1)), None)
            if parent is None:
                return False
            up[node] = self._way(node, parent)
            nodes[node] = 0
        nodes[node] += count
        return True

    def _way(self, start: int, end: int) -> Way:
        forwards = self._network.forwards
        if forwards is None:
            return self._ways.way(start, end)
        found = [start]
        while found[-1] != end:
            found.append(int(forwards[end, found[-1]]))
        return tuple(found)


def _reached(ways: NetworkWays) -> Bools:
    """(places, places): whether frames from the first get to the second, over what is up."""
    network = ways.network
    if network.forwards is None:
        joined: Bools = ways.hops < FAR
        return joined
    found: Bools = _forwarded(network, network.forwards).T
    return found


def _forwarded(network: Network, forwards: Ints) -> Bools:
    """(ends, starts)"""
    count = len(network)
    is_up = np.zeros((count, count), dtype=np.bool_)
    a, b = network.ends[network.is_up].T
    is_up[a, b] = is_up[b, a] = True
    at = np.arange(count)
    steps = (forwards >= 0) & is_up[at, forwards]
    found = np.eye(count, dtype=np.bool_)
    ends = at[:, None]
    while True:
        more = found | (steps & found[ends, forwards])
        if (more == found).all():
            return found
        found = more
