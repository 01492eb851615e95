"""A plan as the trees that a job's switches are programmed with, and back. Pure.

Between a node and its parent, switches that are none forward by the destination, and they do that
as the fabric's own ways have it. So where a planned way is another, each switch on it becomes a
node, which passes on what its only child sends; and where such a node is not needed, there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from ina.controller.errors import RoutingError
from ina.controller.routing.network import Network
from ina.controller.routing.plan import PlannedTree, Stripe, Way
from ina.fabric.graph import Fabric
from ina.fabric.ports import PortNumber
from ina.protocol.spec import MAX_LEVELS
from ina.trees.forest import MAX_PARTS, Forest
from ina.trees.tree import Node, Tree


class Realiser:
    """For one fabric, whose switches are the network's first places, and a job's ranks."""

    def __init__(
        self,
        fabric: Fabric,
        network: Network,
        ranks: Mapping[int, int],
        number: PortNumber,
        *,
        most_levels: int = MAX_LEVELS,
    ) -> None:
        """``ranks``: in the order of the demand's hosts, each with the port of its top of rack.
        ``most_levels``: of switches, where nodes on hosts or an aggregator are more.
        """
        self._fabric = fabric
        self._network = network
        self._ranks = tuple(ranks)
        self._joined = tuple(ranks.values())
        self._number = number
        self._most_levels = most_levels

    def forest(self, racks: Sequence[int], stripes: Sequence[Stripe]) -> Forest:
        """``racks``: by rank's index, the top of rack.

        Raises :class:`RoutingError`: a way is not how frames go, and cannot be made so;
        :class:`JobRequestError`: a switch would have too many children, or a tree levels.
        """
        parts = _parts([it.share for it in stripes])
        forest = Forest(tuple(self._tree(racks, it.tree) for it in stripes), parts)
        levels = max(tree.level(tree.root) for tree in forest)
        if levels > self._most_levels:
            raise RoutingError(
                f"its ways around what is down take {levels} levels of switches of"
                f" {self._most_levels}"
            )
        return forest

    def _tree(self, racks: Sequence[int], tree: PlannedTree) -> Tree:
        up, first, ways = self._passed_on(racks, self._lean(tree))
        below: dict[int, list[int]] = {}
        for child, way in up.items():
            below.setdefault(way[-1], []).append(child)
        ordered = [tree.root]
        for node in ordered:  # grows: parents come before their children
            ordered.extend(sorted(below.get(node, ())))
        ranks: dict[int, list[int]] = {}
        for index, node in enumerate(first):
            ranks.setdefault(node, []).append(index)
        return Tree(
            tuple(
                self._node(node, up, sorted(below.get(node, ())), ranks.get(node, []), racks, ways)
                for node in ordered
            )
        )

    def _node(
        self,
        node: int,
        up: Mapping[int, Way],
        children: Sequence[int],
        indices: Sequence[int],
        racks: Sequence[int],
        ways: Mapping[tuple[int, int], Way],
    ) -> Node:
        indices = sorted(indices, key=lambda index: self._ranks[index])
        made = Node(
            self._name(node),
            tuple(self._ranks[index] for index in indices),
            tuple(map(self._name, children)),
            tuple(self._port(node, up[child][-2]) for child in children),
        )
        if any(racks[index] != node for index in indices):
            ports = (
                self._port(node, ways[racks[index], node][-2])
                if racks[index] != node
                else self._joined[index]
                for index in indices
            )
            made = replace(made, rank_ports=tuple(ports))
        if node in up:
            way = up[node]
            made = replace(made, parent=self._name(way[-1]), parent_port=self._port(node, way[1]))
        return made

    def _lean(self, tree: PlannedTree) -> PlannedTree:
        """Without nodes that only pass on what the network would forward the same way."""
        up = dict(tree.up)
        for node in list(up):
            below = [child for child, way in up.items() if way[-1] == node]
            if len(below) == 1 and tree.children[node] == 1 and node not in tree.first:
                whole = (*up[below[0]], *up[node][1:])
                if self._is_forwarded(whole):
                    up[below[0]] = whole
                    del up[node]
        return replace(tree, up=up)

    def _passed_on(
        self, racks: Sequence[int], tree: PlannedTree
    ) -> tuple[dict[int, Way], list[int], Mapping[tuple[int, int], Way]]:
        """With a node at each switch of a way that frames do not take by themselves."""
        up: dict[int, Way] = {}
        nodes = set(tree.nodes)
        for way in tree.up.values():
            self._put(up, nodes, way)
        first, ways = [], dict(tree.ways)
        for rack, node in zip(racks, tree.first.tolist(), strict=True):
            way = tree.ways[rack, node]
            if not self._is_forwarded(way):
                self._put(up, nodes, way)
                node = rack
                ways[rack, rack] = (rack,)
            first.append(node)
        return up, first, ways

    def _put(self, up: dict[int, Way], nodes: set[int], way: Way) -> None:
        if self._is_forwarded(way):
            up[way[0]] = way
            return
        for one, other in pairwise(way):
            if up.get(one, (one, other)) != (one, other) or (one in nodes and one != way[0]):
                raise RoutingError(
                    f"frames do not go from {self._name(way[0])} to {self._name(way[-1])} by"
                    f" {self._name(one)}, where the job has another node"
                )
            if not self._network.sums[one]:
                raise RoutingError(
                    f"frames do not go from {self._name(way[0])} to {self._name(way[-1])} by"
                    f" {self._name(one)}, which sums nothing"
                )
            up[one] = (one, other)

    def _is_forwarded(self, way: Way) -> bool:
        if len(way) <= 2:
            return True
        path = self._fabric.path(self._name(way[0]), self._name(way[-1]))
        return path == tuple(map(self._name, way))

    def _name(self, place: int) -> str:
        return self._network.names[place]

    def _port(self, place: int, towards: int) -> int:
        name = self._name(place)
        link = self._fabric.link(name, self._name(towards))
        return self._number(name, link.port_of(name))


def _parts(shares: Sequence[float]) -> tuple[int, ...]:
    """Of the lanes: as few as give these shares, or the nearest of :data:`MAX_PARTS`.

    Raises :class:`RoutingError`: there are more trees than that.
    """
    if len(shares) > MAX_PARTS:
        raise RoutingError(f"{len(shares)} trees: a job has at most {MAX_PARTS}")
    exact = np.array(shares) * MAX_PARTS
    parts = np.maximum(np.floor(exact + 1e-9).astype(int), 1)
    while parts.sum() > MAX_PARTS:
        parts[np.argmax(np.where(parts > 1, parts - exact, -np.inf))] -= 1
    while parts.sum() < MAX_PARTS:
        parts[np.argmax(exact - parts)] += 1
    return tuple(map(int, parts))


def stripes_of(
    fabric: Fabric, network: Network, ranks: Sequence[int], racks: Sequence[int], forest: Forest
) -> tuple[Stripe, ...]:
    """What :meth:`Realiser.forest` would be given for this one.

    Nodes on hosts of workers are none of the plan's. Raises :class:`RoutingError`: it takes a way
    that is not up.
    """
    found = []
    for tree, share in zip(forest, forest.shares, strict=True):
        up: dict[int, Way] = {}
        first = np.zeros(len(ranks), dtype=np.int64)
        ways: dict[tuple[int, int], Way] = {}
        nodes = [node for node in tree.switches if node.switch in fabric]  # no aggregators
        for node in nodes:
            if node.parent is not None and node.parent in fabric:
                up[network.place(node.switch)] = _way(fabric, network, node.switch, node.parent)
        for index, (rank, rack) in enumerate(zip(ranks, racks, strict=True)):
            name = tree.rack(rank)
            if name not in fabric:
                raise RoutingError(f"rank {rank} sends to {name}, which is behind no link")
            first[index] = network.place(name)
            if (rack, int(first[index])) not in ways:
                way = _way(fabric, network, network.names[rack], name)
                ways[rack, int(first[index])] = way
        root = next(it for it in nodes if network.place(it.switch) not in up)
        planned = PlannedTree(network.place(root.switch), up, first, ways)
        found.append(Stripe(share / forest.parts, planned))
    return tuple(found)


def _way(fabric: Fabric, network: Network, start: str, end: str) -> Way:
    way = tuple(network.place(it) for it in fabric.path(start, end))
    for pair in pairwise(way):
        if pair not in network.cable_between:
            one, other = (network.names[it] for it in pair)
            raise RoutingError(f"the link between {one} and {other} is down")
    return way
