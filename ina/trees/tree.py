"""The tree that a job is summed over: nodes, whose children they are, and ways down to the ranks.

A node is a switch, or what adds up on a host of workers. Its children, workers or nodes, have an
index each, which is ``worker`` in their packets and their bit in its bitmap. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from ina.protocol.peer import Peer
from ina.protocol.spec import (
    MAX_LEVELS,
    MAX_WORKERS,
    OWNER_BITS,
    PATH_BITS,
    index_bits,
    path_mask,
    path_of,
)
from ina.trees.errors import JobRequestError

_OWNER_SHIFT = PATH_BITS - OWNER_BITS


@dataclass(frozen=True)
class HostNode:
    """Where one is, as its switch sees it."""

    rank: int
    """In whose process it runs: the lowest of those that send to it; of an aggregator 0."""
    peer: Peer
    switch_port: int
    """The switch's port that it is behind."""
    uplink_port: int
    """Its own port towards the switch."""

    @property
    def name(self) -> str:
        """Of the tree's node, for people; no switch is called so: ``host 10.0.0.3:4433``."""
        return f"host {self.peer}"

    @property
    def text(self) -> str:
        """For its ranks: ``rank 4's process``."""
        return f"rank {self.rank}'s process"


@dataclass(frozen=True)
class Node:
    """One switch's part in a tree."""

    switch: str
    """Its name."""
    ranks: tuple[int, ...] = ()
    """The workers that are its children. Their indices come first, in this order."""
    nodes: tuple[str, ...] = ()
    """The switches that are its children, by name. Their indices follow."""
    ports: tuple[int, ...] = ()
    """By index of a child *node* (the first of ``nodes`` is 0): this switch's port towards it."""
    parent: str | None = None
    """The switch above it; None: it is the root."""
    parent_port: int = 0
    """This switch's port towards its parent."""
    host: HostNode | None = None
    """Where it is, if it is on a host of workers; None: it is a switch of the controller's."""
    is_shared: bool = False
    """Whether its slots are shared with other jobs, so that parts of sums may pass it alone."""
    expands: bool = True
    """Whether a header that comes to it alone can leave with values."""
    rank_ports: tuple[int, ...] = ()
    """By index of a worker: this switch's port behind which it is, with others between, which just
    forward. Empty: the node is its top of rack, and it is behind the port that it joined with."""

    @property
    def fan_in(self) -> int:
        """How many children it has."""
        return len(self.ranks) + len(self.nodes)

    @property
    def full_bitmap(self) -> int:
        """A bit for each child."""
        return (1 << self.fan_in) - 1

    def index_of_rank(self, rank: int) -> int:
        """The index of a worker that is its child."""
        return self.ranks.index(rank)

    def index_of_node(self, switch: str) -> int:
        """The index of a node that is its child."""
        return len(self.ranks) + self.nodes.index(switch)

    def port_of(self, rank: int, joined: int) -> int:
        """This switch's port towards a worker that is its child, which ``joined`` with that one."""
        return self.rank_ports[self.ranks.index(rank)] if self.rank_ports else joined


@dataclass(frozen=True)
class Tree:
    """Nodes by the names of their switches, the root first and parents before their children."""

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        """Raises :class:`JobRequestError`: a node with too many children, too many levels."""
        assert len(self._by_switch) == len(self.nodes), "a switch is two nodes of a tree"
        assert [at for at, node in enumerate(self.nodes) if node.parent is None] == [0]
        if self.is_shared and len(self._bits) > MAX_WORKERS:
            raise JobRequestError(
                f"{len(self._bits)} contributions to a sum: mode 'shared' sums at most"
                f" {MAX_WORKERS} (a packet names each of them by a bit); use mode 'pool'"
            )
        for node in self.nodes:
            if node.fan_in > MAX_WORKERS:
                raise JobRequestError(
                    f"switch {node.switch!r} would add up {node.fan_in} contributions: a switch"
                    f" adds up at most {MAX_WORKERS} (its bitmap has {MAX_WORKERS} bits)"
                )
            if self.depth(node) >= MAX_LEVELS:
                raise JobRequestError(
                    f"switch {node.switch!r} would be {self.depth(node)} levels below the root"
                    f" {self.root.switch!r}: a tree has at most {MAX_LEVELS} levels of switches"
                )

    @cached_property
    def _by_switch(self) -> Mapping[str, Node]:
        return {node.switch: node for node in self.nodes}

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, switch: str) -> Node:
        return self._by_switch[switch]

    def __contains__(self, switch: object) -> bool:
        return switch in self._by_switch

    @property
    def root(self) -> Node:
        """The node that makes results."""
        return self.nodes[0]

    @property
    def is_shared(self) -> bool:
        """Whether some of its switches share their slots with other jobs (mode ``shared``)."""
        return any(node.is_shared for node in self.nodes)

    @property
    def full_bitmap(self) -> int:
        """The contributors that a whole result names.

        Where slots are shared, sums are sets of workers, and of nodes on hosts, each of which has
        the same bit everywhere; else these are the root's children.
        """
        return (1 << len(self._bits)) - 1 if self.is_shared else self.root.full_bitmap

    def child_bits(self, node: Node) -> tuple[int, ...]:
        """By index of the node's children: the bits of a bitmap there that are the child's."""
        if not self.is_shared or (node.host is not None and node.parent is not None):
            return tuple(1 << index for index in range(node.fan_in))
        return (
            *(self._bits[rank] for rank in node.ranks),
            *(self._bits_below(self._by_switch[name]) for name in node.nodes),
        )

    def _bits_below(self, node: Node) -> int:
        if node.host is not None:  # one contribution: that of its lowest rank
            return self._bits[min(node.ranks)]
        return sum(self.child_bits(node))

    @cached_property
    def _bits(self) -> Mapping[int, int]:
        """Where slots are shared: by the rank, or the lowest rank of those on a host's node."""
        ranks = []
        for node in self.nodes:
            if node.host is not None and node.parent is not None:
                ranks.append(min(node.ranks))
            else:
                ranks += node.ranks
        return {rank: 1 << number for number, rank in enumerate(sorted(ranks))}

    @property
    def has_one_switch(self) -> bool:
        """Whether all other nodes, if there are any, are on hosts of workers."""
        return len(self.switches) == 1

    @property
    def switches(self) -> tuple[Node, ...]:
        """The nodes that are the controller's: all but those on hosts of workers."""
        return tuple(node for node in self.nodes if node.host is None)

    @cached_property
    def _first(self) -> Mapping[int, Node]:
        return {rank: node for node in self.nodes for rank in node.ranks}

    def first_node(self, rank: int) -> Node:
        """The node that a worker sends to; :class:`KeyError`: it is none of the tree's."""
        return self._first[rank]

    def rack(self, rank: int) -> str:
        """The switch that a worker's part comes to first; :class:`KeyError`: it is none's."""
        first = self.first_node(rank)
        if first.host is None:
            return first.switch
        assert first.parent is not None  # what makes results on a host has no ranks of its own
        return first.parent

    def depth(self, node: Node) -> int:
        """Levels between the root (0) and this node."""
        steps = 0
        while node.parent is not None:
            node = self._by_switch[node.parent]
            steps += 1
        return steps

    def level(self, node: Node) -> int:
        """How many levels of nodes end with this one, 1 for one that has workers alone."""
        below = (self.level(self._by_switch[name]) for name in node.nodes)
        return 1 + max(below, default=0)

    def way(self, node: Node) -> tuple[int, ...]:
        """The indices down from the root to this node."""
        if node.parent is None:
            return ()
        above = self._by_switch[node.parent]
        return (*self.way(above), above.index_of_node(node.switch))

    def widths(self, node: Node) -> tuple[int, ...]:
        """How many bits of a path each index takes, from the root's to this node's own."""
        if node.parent is None:
            return (index_bits(node.fan_in, is_root=True),)
        return (*self.widths(self._by_switch[node.parent]), index_bits(node.fan_in))

    def path(self, rank: int) -> int:
        """What a worker writes into ``path``."""
        first = self.first_node(rank)
        return path_of((*self.way(first), first.index_of_rank(rank)), self.widths(first))

    def path_mask(self, node: Node) -> int:
        """The bits of a path that lead from the root to a child of this node."""
        return path_mask(self.widths(node))

    def children_ways(self, node: Node) -> tuple[int, ...]:
        """By index of the node's children: a path's bits under :meth:`path_mask`."""
        way, widths = self.way(node), self.widths(node)
        return tuple(path_of((*way, index), widths) for index in range(node.fan_in))

    @cached_property
    def path_bits(self) -> int:
        """Of its longest path."""
        return max(sum(self.widths(node)) for node in self.nodes)

    @property
    def has_shapes(self) -> bool:
        """Whether half of a path's bits is enough for each of its paths, so that a packet has room
        for the owner's, too (:class:`ina.protocol.spec.Shape`), and each node expands."""
        return self.path_bits <= OWNER_BITS and all(node.expands for node in self.nodes)

    def owner(self, rank: int) -> int | None:
        """A rank's path in 12 bits, as packets of its chunks have it; None: it has no shapes."""
        return self.path(rank) >> _OWNER_SHIFT if self.has_shapes else None

    @cached_property
    def owners(self) -> tuple[int, ...]:
        """By rank, :meth:`owner`; empty where it has no shapes."""
        if not self.has_shapes:
            return ()
        return tuple(self.path(rank) >> _OWNER_SHIFT for rank in sorted(self._first))

    def owner_mask(self, node: Node) -> int:
        """:meth:`path_mask` of an owner's 12 bits; for a tree that has shapes."""
        return self.path_mask(node) >> _OWNER_SHIFT

    def owner_ways(self, node: Node) -> tuple[int, ...]:
        """By index of the node's children: an owner's bits under :meth:`owner_mask`, if it is that
        child or below it; for a tree that has shapes."""
        return tuple(way >> _OWNER_SHIFT for way in self.children_ways(node))


def with_aggregator(tree: Tree, root: Node, port: int) -> Tree:
    """The tree with its switches' slots shared, below another root.

    ``port``: of its former root, towards that. Raises :class:`JobRequestError` as :class:`Tree`
    does.
    """
    top = replace(tree.root, is_shared=True, parent=root.switch, parent_port=port)
    rest = [replace(it, is_shared=it.host is None) for it in tree.nodes[1:]]
    return Tree((root, top, *rest))


def below_itself(tree: Tree) -> Tree:
    """The tree with its switches' slots shared, but for the root's, which is the aggregator."""
    shared = (replace(it, is_shared=it.host is None) for it in tree.nodes[1:])
    return Tree((tree.root, *shared))


def without_aggregator(tree: Tree, *, is_above: bool) -> Tree:
    """What :func:`with_aggregator` was given if it ``is_above``, else :func:`below_itself`."""
    nodes = [replace(it, is_shared=False) for it in tree]
    if is_above:
        _, top, *rest = nodes
        nodes = [replace(top, parent=None, parent_port=0), *rest]
    return Tree(tuple(nodes))


def single(switch: str, world_size: int) -> Tree:
    """All workers at one switch; their indices are their ranks."""
    return Tree((Node(switch, tuple(range(world_size))),))
