"""Shortest ways from every place to every other, as arrays. Pure.

Of several, the one that frames take by themselves, where that is known. Else the way to a place
prefers other neighbours than the way to another place does: so trees of different roots are spread
over the cables. In a tree of switches with several tops (leaf-spine,
fat-tree) there is one shortest way up to each top.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ina.controller.routing.network import Floats, Ints, Network

FAR = 1 << 14
"""Cables to where no way leads."""

Hops = npt.NDArray[np.int16]


@dataclass(frozen=True, eq=False)
class Ways:
    """Of a network."""

    network: Network
    hops: Hops
    """(places, places): cables between them, :data:`FAR` where no way leads."""
    seed: int = 0

    @property
    def towards(self) -> tuple[Ints, Ints]:
        """(roots, places) each: the next place from a place towards a root, and the cable there.

        -1: no way leads there, or it is there.
        """
        return self.variant(0)

    def variant(self, number: int) -> tuple[Ints, Ints]:
        """As :attr:`towards`, of the first; in others each place chooses among its nearest
        neighbours by itself, so that what is not summed on the way is spread over all of them.
        """
        if number not in self._variants:
            self._variants[number] = self._found(number)
        return self._variants[number]

    @cached_property
    def _variants(self) -> dict[int, tuple[Ints, Ints]]:
        return {}

    def _found(self, number: int) -> tuple[Ints, Ints]:
        count = len(self.network)
        next_place = np.full((count, count), -1, dtype=np.int64)
        next_cable = np.full((count, count), -1, dtype=np.int64)
        rng = np.random.default_rng((self.seed, number))
        of_roots = rng.permuted(np.tile(np.arange(count), (count, 1)), axis=1)
        forwards = self.network.forwards
        for place, (neighbours, cables) in enumerate(self._neighbours):
            if not len(neighbours):
                continue
            nearer = self.hops[neighbours] == self.hops[place] - 1  # (neighbours, roots)
            preference = of_roots[:, neighbours].T if not number else rng.random(nearer.shape)
            rank = np.where(nearer, preference, count)
            if forwards is not None and not number:  # (neighbours, roots)
                rank[nearer & (neighbours[:, None] == forwards[:, place])] = -1
            best = rank.argmin(axis=0)
            there = nearer.any(axis=0)
            next_place[there, place] = neighbours[best[there]]
            next_cable[there, place] = cables[best[there]]
        return next_place, next_cable

    def way(self, start: int, end: int) -> tuple[int, ...]:
        """Places, both ends among them. Raises :class:`ValueError`: no way leads there."""
        if self.hops[start, end] >= FAR:
            names = self.network.names
            raise ValueError(f"no way leads from {names[start]} to {names[end]}")
        found, towards = [start], self.towards[0][end]
        while found[-1] != end:
            found.append(int(towards[found[-1]]))
        return tuple(found)

    @cached_property
    def _neighbours(self) -> list[tuple[Ints, Ints]]:
        """By place: its neighbours, and the cable to each; of parallel ones the fastest."""
        by_place: list[list[tuple[int, int]]] = [[] for _ in self.network.names]
        for (a, b), cable in self.network.cable_between.items():
            by_place[a].append((b, cable))
        return [
            (
                np.array([it for it, _ in pairs], dtype=np.int64),
                np.array([it for _, it in pairs], dtype=np.int64),
            )
            for pairs in by_place
        ]


def ways_of(network: Network, *, seed: int = 0) -> Ways:
    """Over the cables that are up. ``seed``: of which ways are preferred among equals."""
    count = len(network)
    joined = np.zeros((count, count), dtype=np.float32)
    a, b = network.ends[network.is_up].T
    joined[a, b] = joined[b, a] = 1.0
    hops = np.full((count, count), FAR, dtype=np.int16)
    np.fill_diagonal(hops, 0)
    reached = np.eye(count, dtype=np.float32)
    for distance in range(1, count):
        reached = ((reached @ joined + reached) > 0).astype(np.float32)
        fresh = (reached > 0) & (hops == FAR)
        if not fresh.any():
            break
        hops[fresh] = distance
    return Ways(network, hops, seed)


def detours(network: Network, prices: Floats) -> Floats:
    """(places, places): the price of the cheapest way between each two; ``prices``: of cables."""
    count = len(network)
    cost = np.full((count, count), np.inf)
    np.fill_diagonal(cost, 0.0)
    for (a, b), cable in network.cable_between.items():
        cost[a, b] = min(cost[a, b], prices[cable])
    for middle in range(count):
        np.minimum(cost, cost[:, middle, None] + cost[None, middle], out=cost)
    return cost
