"""Shortest ways from every place of a network to every other, spread over its cables. Pure.

Of several, the one that frames take by themselves, where that is known. Else the way to a place
prefers other neighbours than the way to another place does: so trees of different roots are spread
over the cables. In a tree of switches with several tops (leaf-spine,
fat-tree) there is one shortest way up to each top.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ina.controller.routing.network import Network
from ina.fabric.ways import FAR, Ints, Ways


class NetworkWays(Ways):
    """Over the cables of a network that are up."""

    def __init__(self, network: Network, *, seed: int = 0) -> None:
        """``seed``: of which ways are preferred among equals."""
        super().__init__(len(network), network.cable_between)
        self.network = network
        self.seed = seed

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
            self._variants[number] = self.spread(
                np.random.default_rng((self.seed, number)),
                None if number else self.network.forwards,
                by_place=number > 0,
            )
        return self._variants[number]

    @cached_property
    def _variants(self) -> dict[int, tuple[Ints, Ints]]:
        return {}

    def way(self, start: int, end: int) -> tuple[int, ...]:
        """Places, both ends among them. Raises :class:`ValueError`: no way leads there."""
        if self.hops[start, end] >= FAR:
            names = self.network.names
            raise ValueError(f"no way leads from {names[start]} to {names[end]}")
        found, towards = [start], self.towards[0][end]
        while found[-1] != end:
            found.append(int(towards[found[-1]]))
        return tuple(found)
