"""A few ways between each two places, the shortest first. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from ina.controller.routing.network import Ints, NetworkWays
from ina.controller.routing.plan import Way
from ina.fabric.ways import FAR

MOST_WAYS = 4


@dataclass(frozen=True, eq=False)
class Paths:
    """Of a network. The first way between two places is :meth:`NetworkWays.way`."""

    ways: NetworkWays
    most: int = MOST_WAYS
    """Between two places."""
    spare: int = 0
    """Cables that a way may have more than the shortest."""
    _found: dict[tuple[int, int], tuple[Way, ...]] = field(default_factory=dict)

    def between(self, start: int, end: int) -> tuple[Way, ...]:
        """Empty: no way leads there."""
        found = self._found.get((start, end))
        if found is None:
            found = self._found[start, end] = tuple(self._ways(start, end))
        return found

    def cables(self, way: Way) -> list[int]:
        """That a way takes."""
        between = self.ways.network.cable_between
        return [between[pair] for pair in pairwise(way)]

    def table(self, pairs: list[tuple[int, int]], *, pad: int, absent: int) -> Ints:
        """(pairs, ways, cables): numbers of cables; ``pad`` where a way has no more, ``absent``
        where there is no such way."""
        every = [self.between(*pair) for pair in pairs]
        deep = max((len(it) for it in every), default=1)
        long = max((len(way) - 1 for it in every for way in it), default=0)
        found = np.full((len(pairs), max(deep, 1), max(long, 1)), absent, dtype=np.int64)
        for number, ways in enumerate(every):
            for which, way in enumerate(ways):
                found[number, which, : len(way) - 1] = self.cables(way)
                found[number, which, len(way) - 1 :] = pad
        return found

    @cached_property
    def _hops(self) -> list[list[int]]:
        """By end: of each place."""
        found: list[list[int]] = self.ways.hops.T.tolist()
        return found

    @cached_property
    def _neighbours(self) -> list[list[int]]:
        """By place, in an order of chance: so ways are spread over the cables."""
        rng = np.random.default_rng(self.ways.seed)
        by_place: list[list[int]] = [[] for _ in self.ways.network.names]
        for a, b in self.ways.network.cable_between:
            by_place[a].append(b)
        return [rng.permutation(it).tolist() for it in by_place]

    def _ways(self, start: int, end: int) -> Iterator[Way]:
        shortest = self._hops[end][start]
        if shortest >= FAR:
            return
        first = self.ways.way(start, end)
        yield first
        left = self.most - 1
        for length in range(shortest, shortest + self.spare + 1 if shortest else 0):
            searches = [
                self._search((start, it), end, length - 1) for it in self._neighbours[start]
            ]
            while searches and left > 0:  # one of each neighbour in turn
                search = searches.pop(0)
                way = next(search, None)
                if way is not None:
                    searches.append(search)
                    if way != first:
                        yield way
                        left -= 1

    def _search(self, so_far: Way, end: int, left: int) -> Iterator[Way]:
        """Ways on, of just so many cables more."""
        here = so_far[-1]
        if left < self._hops[end][here] or (here == end) != (left == 0):
            return
        if here == end:
            yield so_far
            return
        hops = self._hops[end]
        for place in self._neighbours[here]:
            if hops[place] < left and place not in so_far:
                yield from self._search((*so_far, place), end, left - 1)
