"""Switches and workers that the search puts a job on: cables, addresses, and what each is told.

Places are numbered: switches from 0, the root, workers from WORKER. Each place but the root has one
cable up. A port is called as the place at its other end. The tree is the controller's own, and so
are the ways that paths are made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from ina.protocol.spec import UDP_PORT
from ina.protocol.switch_model import Attachment, ModelJob, Parent
from ina.trees.tree import Node, Tree

WORKER = 100
"""The first worker's place."""

FIRST_SLOT = 3
"""Of the job's range in each switch's memory."""

_IPV4 = 0x0A000000


class Fabric:
    """``parents[k]``: the switch above switch k, None for 0. ``workers[w]``: whose child w is.

    ``behind[w]``: the switch at the other end of worker w's cable, where it is not that one.
    """

    def __init__(
        self,
        parents: tuple[int | None, ...],
        workers: tuple[int, ...],
        behind: Mapping[int, int],
    ) -> None:
        self.parents, self.workers = parents, workers
        self.switches = range(len(parents))
        self.ranks = range(len(workers))
        self.up = {WORKER + w: behind.get(w, first) for w, first in enumerate(workers)}
        self.up |= {k: above for k, above in enumerate(parents) if above is not None}

    @cached_property
    def tree(self) -> Tree:
        """As the controller describes it."""
        return Tree(tuple(map(self._node, self.switches)))

    def _node(self, switch: int) -> Node:
        below = [k for k in self.switches if self.parents[k] == switch]
        above = self.parents[switch]
        return Node(
            str(switch),
            ranks=tuple(w for w, first in enumerate(self.workers) if first == switch),
            nodes=tuple(map(str, below)),
            ports=tuple(below),
            parent=None if above is None else str(above),
            parent_port=above or 0,
        )

    @property
    def full_bitmap(self) -> int:
        """Of a result: the root's."""
        return self.tree.root.full_bitmap

    def child(self, place: int) -> int:
        """Its index among the children of the switch that sums its packets."""
        if place >= WORKER:
            rank = place - WORKER
            return self.tree.first_node(rank).index_of_rank(rank)
        return self.tree[str(self.parents[place])].index_of_node(str(place))

    def address(self, place: int, port: int) -> Attachment:
        """Of a place, as its neighbour at ``port`` of somebody would be told."""
        return Attachment(port, _IPV4 + place, 5000 + place if place >= WORKER else UDP_PORT)

    def job(self, switch: int, epoch: int, slots: int) -> ModelJob:
        """What the controller installs there."""
        node = self.tree[str(switch)]
        children = [*(WORKER + rank for rank in node.ranks), *node.ports]
        above = self.parents[switch]
        parent = None
        if above is not None:
            worker, level = self.tree.way(node)[-1], self.tree.level(node)
            ways = self.tree.path_mask(node), self.tree.children_ways(node)
            parent = Parent(self.address(above, above), worker, level, *ways)
        at = tuple(self.address(child, self.next_hop(switch, child)) for child in children)
        return ModelJob(1, epoch, FIRST_SLOT, slots, at, parent=parent)

    def next_hop(self, switch: int, place: int) -> int:
        """The neighbour that a switch forwards to what is for a place."""
        at = place
        while at in self.up:
            if self.up[at] == switch:
                return at
            at = self.up[at]
        return self.up[switch]

    def is_ours(self, switch: int, to: Attachment) -> bool:
        """Whether a switch takes what is sent there, for it has that address itself."""
        return (to.ipv4, to.udp_port) == (_IPV4 + switch, UDP_PORT)

    def carry(self, origin: int, to: Attachment) -> tuple[int, Attachment] | None:
        """Who takes what leaves ``origin`` by ``to.port`` for the rest of ``to``, and its sender
        as the taker sees it. None: nobody does."""
        came, at = origin, to.port
        while at < WORKER and not self.is_ours(at, to):
            came, at = at, self.next_hop(at, to.ipv4 - _IPV4)
        if at >= WORKER and self.address(at, to.port) != to:
            return None
        return at, self.address(origin, came)
