"""What a routing policy decides: each job's trees, with every way that packets take. Pure.

A plan is for the judge (:mod:`ina.controller.routing.judge`) as much as for the controller: nothing
of it is meant to be as the network would forward anyhow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ina.controller.routing.network import Ints

Way: TypeAlias = "tuple[int, ...]"
"""Places from one that sends to the one that takes, both among them."""


@dataclass(frozen=True, eq=False)
class PlannedTree:
    """Of places that sum: who sends to whom, and by which way."""

    root: int
    """The node that makes results."""
    up: Mapping[int, Way]
    """By node, of all but the root: the way to its parent."""
    first: Ints
    """(workers,): by rank, the node that it sends to."""
    ways: Mapping[tuple[int, int], Way]
    """By (top of rack, first node): the way of those workers."""

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """The root first."""
        return (self.root, *(node for node in self.up if node != self.root))

    @cached_property
    def children(self) -> dict[int, int]:
        """By node: how many contributions make its sum."""
        counts = dict.fromkeys(self.nodes, 0)
        for way in self.up.values():
            counts[way[-1]] += 1
        for node, count in zip(*np.unique(self.first, return_counts=True), strict=True):
            counts[int(node)] = counts.get(int(node), 0) + int(count)
        return counts

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Alike for trees that are alike."""
        return (self.root, tuple(sorted(self.up.items())), self.first.tobytes(), *self._ways)

    @property
    def _ways(self) -> Iterator[tuple[tuple[int, int], Way]]:
        return iter(sorted(self.ways.items()))

    def level(self, node: int) -> int:
        """Nodes between this one and the root, both counted. Raises :class:`ValueError`: a ring."""
        count = 1
        while node != self.root:
            node, count = self.up[node][-1], count + 1
            if count > len(self.up) + 1:
                raise ValueError("nodes send to each other in a ring")
        return count


@dataclass(frozen=True, eq=False)
class Stripe:
    """A part of a job's lanes, and the tree that sums it."""

    share: float
    """Of the job's lanes and bytes: more than 0, at most 1."""
    tree: PlannedTree


@dataclass(frozen=True, eq=False)
class Plan:
    """By job, its stripes: their shares are 1 together."""

    stripes: Mapping[str, tuple[Stripe, ...]] = field(default_factory=dict)

    def with_job(self, name: str, stripes: tuple[Stripe, ...]) -> Plan:
        """With other trees for this one."""
        return Plan({**self.stripes, name: stripes})

    def moved(self, former: Plan) -> int:
        """Trees of jobs of both plans that are in this one alone: what running jobs move to."""
        return sum(
            len({it.tree.key for it in stripes} - {it.tree.key for it in former.stripes[name]})
            for name, stripes in self.stripes.items()
            if name in former.stripes
        )


def merged(stripes: tuple[Stripe, ...]) -> tuple[Stripe, ...]:
    """Stripes of like trees are one."""
    found: dict[tuple[object, ...], Stripe] = {}
    for it in stripes:
        had = found.get(it.tree.key)
        found[it.tree.key] = it if had is None else Stripe(had.share + it.share, it.tree)
    return tuple(found.values())
