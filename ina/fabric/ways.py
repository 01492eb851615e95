"""The one table of ways over a graph: who is how far from whom, and by which neighbours. Pure.

Places and cables have numbers. Of several shortest ways between two places there is always one that
is meant: the one whose last cable in order, of those that the other has not, comes earlier. So the
way back is the way there, and every part of a way is the way between its ends. That is what lets a
switch know from where to expect what another one sends.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

FAR = 1 << 14
"""Cables to where no way leads."""

Ints = npt.NDArray[np.int64]
Hops = npt.NDArray[np.int16]


class Ways:
    """Over all cables that are up: where one goes down, others are found of what is left."""

    def __init__(self, places: int, cables: Mapping[tuple[int, int], int]) -> None:
        """``cables``: by two places, either way, the number of the one that ways take."""
        self.cables = cables
        self._places = places

    @cached_property
    def neighbours(self) -> list[tuple[Ints, Ints]]:
        """By place: its neighbours, and the cable to each."""
        by_place: list[list[tuple[int, int]]] = [[] for _ in range(self._places)]
        for (one, other), cable in self.cables.items():
            by_place[one].append((other, cable))
        return [
            (
                np.array([it for it, _ in pairs], dtype=np.int64),
                np.array([it for _, it in pairs], dtype=np.int64),
            )
            for pairs in by_place
        ]

    @cached_property
    def hops(self) -> Hops:
        """(places, places): cables between them, :data:`FAR` where no way leads."""
        count = self._places
        joined = np.zeros((count, count), dtype=np.float32)
        for one, other in self.cables:
            joined[one, other] = joined[other, one] = 1.0
        hops = np.full((count, count), FAR, dtype=np.int16)
        np.fill_diagonal(hops, 0)
        reached = np.eye(count, dtype=np.float32)
        for distance in range(1, count):
            reached = ((reached @ joined + reached) > 0).astype(np.float32)
            fresh = (reached > 0) & (hops == FAR)
            if not fresh.any():
                break
            hops[fresh] = distance
        return hops

    def nearer(self, place: int, to: int) -> Ints:
        """Neighbours from which it is one cable less: all that a shortest way can go on by."""
        there, _ = self.neighbours[place]
        found: Ints = there[self.hops[there, to] == self.hops[place, to] - 1]
        return found

    @cached_property
    def next_places(self) -> Ints:
        """(places, places): the next one on the way that is meant, to the first from the second.

        -1: there is none.
        """
        found = np.full((self._places, self._places), -1, dtype=np.int64)
        for end in range(self._places):
            hops = self.hops[:, end]
            # Cables as bits: as many of them weigh less, whose highest is lower.
            weights = {end: 0}
            for place in np.argsort(hops, kind="stable").tolist():
                if 0 < hops[place] < FAR:
                    weights[place], found[end, place] = min(
                        (weights[there] | 1 << self.cables[place, there], there)
                        for there in self.nearer(place, end).tolist()
                    )
        return found

    def shortest(self, start: int, end: int) -> tuple[int, ...]:
        """The one that is meant: places, both ends among them; empty: none leads there."""
        if self.hops[start, end] >= FAR:
            return ()
        found, onwards = [start], self.next_places[end]
        while found[-1] != end:
            found.append(int(onwards[found[-1]]))
        return tuple(found)

    def spread(
        self, chance: np.random.Generator, first: Ints | None = None, *, by_place: bool = False
    ) -> tuple[Ints, Ints]:
        """(ends, places) each: by chance the next place from a place towards an end, and the cable.

        -1: no way leads there, or it is there. Ways to one end prefer other neighbours than ways to
        another do; ``by_place``: each place chooses by itself. ``first``: what is taken before
        these, where it is nearer, by end and place.
        """
        count = self._places
        next_place = np.full((count, count), -1, dtype=np.int64)
        next_cable = np.full((count, count), -1, dtype=np.int64)
        of_ends = chance.permuted(np.tile(np.arange(count), (count, 1)), axis=1)
        for place, (neighbours, cables) in enumerate(self.neighbours):
            if not len(neighbours):
                continue
            nearer = self.hops[neighbours] == self.hops[place] - 1  # (neighbours, ends)
            preference = chance.random(nearer.shape) if by_place else of_ends[:, neighbours].T
            rank = np.where(nearer, preference, count)
            if first is not None:
                rank[nearer & (neighbours[:, None] == first[:, place])] = -1
            best = rank.argmin(axis=0)
            there = nearer.any(axis=0)
            next_place[there, place] = neighbours[best[there]]
            next_cable[there, place] = cables[best[there]]
        return next_place, next_cable
