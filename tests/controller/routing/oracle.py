"""Carries a plan out, packet by packet: an independent account of what the judge computes."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np

from ina.controller.routing.demand import Demand
from ina.controller.routing.network import Network
from ina.controller.routing.plan import Plan, PlannedTree


class Carried:
    """What came of one step of jobs."""

    def __init__(self, network: Network) -> None:
        self.cables = np.zeros((2, len(network.rates)))
        """Bytes by direction: from the first end to the second, and back."""
        self.places = np.zeros(len(network))
        self._network = network

    def hop(self, a: int, b: int, size: float) -> None:
        """Over the cable between two places."""
        cable = self._network.cable_between[a, b]
        assert self._network.rates[cable] > 0
        self.cables[int(self._network.ends[cable][0] != a)][cable] += size


def carry(network: Network, demands: tuple[Demand, ...], plan: Plan) -> Carried:
    """Every rank sends a part that names it; asserts that each ends in each result once, and that
    each rank gets the result."""
    carried = Carried(network)
    for demand in demands:
        shares = 0.0
        for stripe in plan.stripes[demand.name]:
            _carry(network, demand, stripe.tree, stripe.share * demand.step_bytes, carried)
            shares += stripe.share
        assert abs(shares - 1) < 1e-9
    return carried


def _carry(
    network: Network, demand: Demand, tree: PlannedTree, size: float, carried: Carried
) -> None:
    arrived: dict[int, list[Counter[int]]] = {}
    children: dict[int, list[tuple[tuple[int, ...], int | None]]] = {}  # way in, rank; None: a node
    for rank, host in enumerate(demand.hosts):
        way = tree.ways[int(network.host_places[host]), int(tree.first[rank])]
        _go(way, size, carried)
        arrived.setdefault(way[-1], []).append(Counter([rank]))
        children.setdefault(way[-1], []).append((way, rank))
    expected = Counter(way[-1] for way in tree.up.values())
    waiting = list(tree.up)
    while waiting:
        ready = [node for node in waiting if not expected[node]]
        assert ready, "nodes wait for each other"
        for node in ready:
            way = tree.up[node]
            _go(way, size, carried)
            arrived.setdefault(way[-1], []).append(_sum(node, arrived, size, carried))
            children.setdefault(way[-1], []).append((way, None))
            expected[way[-1]] -= 1
            waiting.remove(node)
    assert _sum(tree.root, arrived, size, carried) == Counter(range(len(demand.hosts)))
    told, reached = [tree.root], []  # results go back by the ways that contributions came
    while told:
        for way, whose in children[told.pop()]:
            _go(way[::-1], size, carried)
            if whose is None:
                told.append(way[0])
            else:
                reached.append(whose)
    assert sorted(reached) == list(range(len(demand.hosts)))


def _go(way: tuple[int, ...], size: float, carried: Carried) -> None:
    for a, b in pairwise(way):
        carried.hop(a, b, size)


def _sum(
    node: int, arrived: dict[int, list[Counter[int]]], size: float, carried: Carried
) -> Counter[int]:
    parts = arrived[node]
    carried.places[node] += size * len(parts)
    total: Counter[int] = Counter()
    for part in parts:
        total.update(part)
    return total
