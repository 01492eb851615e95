"""The trees that a job is summed over, each of them with a share of the lanes. Pure.

To the data plane a tree is a job of its own: it has a number of its own, and at each of its nodes
slots of its own. A switch may be a node of several, with another parent in each; there it has their
slots side by side, in the order of the trees.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from ina.trees.errors import JobRequestError
from ina.trees.tree import Node, Tree

MAX_PARTS = 16
"""That lanes are cut into: a power of two, as lanes are. Workers are told of as many trees."""


@dataclass(frozen=True)
class Forest:
    """One tree or several, with all workers of a job in each."""

    trees: tuple[Tree, ...]
    shares: tuple[int, ...]
    """By tree: parts of the lanes. Kept as small as they can be, so that equal ones are equal."""

    def __post_init__(self) -> None:
        """Raises :class:`JobRequestError`: the shares are none of lanes, workers are missing."""
        parts = sum(self.shares)
        if len(self.shares) != len(self.trees) or not self.trees or min(self.shares) < 1:
            raise JobRequestError(
                f"{len(self.trees)} trees with shares {self.shares} of the lanes: each wants one"
            )
        object.__setattr__(
            self, "shares", tuple(it // math.gcd(*self.shares) for it in self.shares)
        )
        if self.parts & (self.parts - 1) or self.parts > MAX_PARTS:
            raise JobRequestError(
                f"trees with {parts} parts of the lanes between them: want a power of two, at most"
                f" {MAX_PARTS}"
            )
        ranks = {frozenset(rank for node in tree for rank in node.ranks) for tree in self.trees}
        if len(ranks) > 1:
            raise JobRequestError("a worker is in one tree and not in another: a sum wants all")
        shared = {(node.switch, node.is_shared) for tree in self.trees for node in tree}
        assert len(shared) == len(self._shares_at), "a switch shares slots in one tree of two"
        assert not self.is_shared or len(set(self.shares)) == 1, "shared slots go by equal shares"

    def __iter__(self) -> Iterator[Tree]:
        return iter(self.trees)

    def __len__(self) -> int:
        return len(self.trees)

    def __contains__(self, switch: object) -> bool:
        """Whether it is a node of some tree."""
        return switch in self._shares_at

    @property
    def root(self) -> Node:
        """That of the first tree."""
        return self.trees[0].root

    @property
    def roots(self) -> tuple[Node, ...]:
        """By tree: the node that makes its results."""
        return tuple(tree.root for tree in self.trees)

    @property
    def parts(self) -> int:
        """Of the lanes, all trees together: a power of two."""
        return sum(self.shares)

    @property
    def is_shared(self) -> bool:
        """Whether some switches share their slots with other jobs (mode ``shared``)."""
        return any(tree.is_shared for tree in self.trees)

    @cached_property
    def switches(self) -> tuple[str, ...]:
        """Names of all that are the controller's, each once: the first tree's come first."""
        nodes = (node.switch for tree in self.trees for node in tree.switches)
        return tuple(dict.fromkeys(nodes))

    @property
    def own(self) -> tuple[str, ...]:
        """Of the switches those where the job has slots that are no other's."""
        return tuple(name for name in self.switches if not self.shares_slots_of(name))

    @property
    def has_one_switch(self) -> bool:
        """Whether all other nodes, if there are any, are on hosts of workers."""
        return len(self.switches) == 1

    def without_expansion(self, at: Container[str]) -> Forest:
        """The same over switches of which these cannot expand headers."""
        trees = (
            Tree(tuple(replace(it, expands=it.switch not in at) for it in tree))
            for tree in self.trees
        )
        return Forest(tuple(trees), self.shares)

    def shares_slots_of(self, switch: str) -> bool:
        """Whether its slots there are other jobs', too, or it is no node at all."""
        return all(tree[switch].is_shared for tree in self.trees if switch in tree)

    def parts_at(self, switch: str) -> int:
        """How many parts of the lanes pass a node."""
        return self._shares_at[switch]

    def slots_at(self, switch: str, slots: int) -> int:
        """What a node needs for a job with so many ``slots``."""
        return slots * self._shares_at[switch] // self.parts

    def slots_of(self, switch: str, slots: int) -> int:
        """Of a job with so many slots at a node: how many it has for packets to name."""
        return slots * self.parts // self._shares_at[switch]

    def divisible(self, job: str, slots: int) -> int:
        """As many ``slots`` as its trees can have between them, at most these.

        Raises :class:`JobRequestError`: less than a lane for each part.
        """
        least = 2 * self.parts
        if len(self.trees) == 1:
            return slots
        if slots < least:
            raise JobRequestError(
                f"job {job!r}: {slots} slots for {len(self.trees)} trees with {self.parts} parts of"
                f" the lanes between them: at least {least}"
            )
        return slots - slots % least

    def first_nodes(self, rank: int) -> tuple[Node, ...]:
        """By tree: the node that a worker sends to; :class:`KeyError`: it is none's."""
        return tuple(tree.first_node(rank) for tree in self.trees)

    @cached_property
    def _shares_at(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for tree, share in zip(self.trees, self.shares, strict=True):
            for node in tree:
                found[node.switch] = found.get(node.switch, 0) + share
        return found


def forest_of(*trees: Tree) -> Forest:
    """Trees with equal shares of the lanes; of one it has all."""
    return Forest(trees, (1,) * len(trees))
