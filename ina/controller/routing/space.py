"""What GRID may choose from: one place for each worker's sum, and the way there and on. Pure.

A worker's *point* is the place that sums it, or the root. From each point one sum goes straight to
the root. In small networks every place that sums may be the point of every worker; in large ones,
that fold to a tree, those on the worker's way to the root.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ina.controller.errors import RoutingError
from ina.controller.routing.demand import Demand
from ina.controller.routing.fold import Fold, fold_of
from ina.controller.routing.loads import Loads, slots_for
from ina.controller.routing.network import NO_LIMIT, Bools, Ints, Network, NetworkWays
from ina.controller.routing.paths import MOST_WAYS, Paths
from ina.controller.routing.plan import PlannedTree, Way
from ina.controller.routing.policy import Situation
from ina.fabric.ways import FAR

SMALL = 4_000
"""Racks of all jobs, times places, times ways: up to here nothing is folded."""

FORMULATIONS = ("path", "rate")


@dataclass(frozen=True, eq=False)
class Space:
    """Of some jobs in a network; of a folded one, too."""

    network: Network
    demands: tuple[Demand, ...]
    base: Loads
    """Of other jobs."""
    paths: Paths
    fold: Fold | None
    """To the network whose linear program is solved; None: it is this one, as it is."""
    members: Ints
    """(places,): of the real network, how many each place stands for."""
    is_folded: bool = False

    @cached_property
    def small(self) -> Space:
        """The space whose linear program is solved: its optimum is a bound of this one's."""
        if self.fold is None:
            return self
        return Space(
            self.fold.network,
            tuple(map(self.fold.demand, self.demands)),
            self.fold.loads(self.base),
            Paths(NetworkWays(self.fold.network), most=1),
            None,
            self.fold.members,
            is_folded=True,
        )

    @property
    def most_columns(self) -> int:
        """Of its program, about."""
        return _columns(self.network, self.demands, self.paths.most)

    def points(self, rack: int, root: int) -> tuple[int, ...]:
        """Where workers of a rack may be summed on their way to a root, the root not among them."""
        key = (rack, root)
        if key not in self._points:
            self._points[key] = tuple(np.flatnonzero(self._are_points(rack, root)).tolist())
        return self._points[key]

    @cached_property
    def _points(self) -> dict[tuple[int, int], tuple[int, ...]]:
        return {}

    def _are_points(self, rack: int, root: int) -> Bools:
        hops, sums = self.paths.ways.hops, self.network.sums
        found: Bools = sums & (hops[rack] < FAR) & (hops[:, root] < FAR)
        if self.is_folded:
            on_way = np.zeros(len(self.network), dtype=np.bool_)
            on_way[list(self.paths.between(rack, root)[0])] = True
            found &= on_way
        elif self.fold is not None:
            ends = (int(self.fold.class_of[it]) for it in (rack, root))
            classes = (*self.small.points(*ends), int(self.fold.class_of[root]))
            found &= np.isin(self.fold.class_of, classes)
        found[root] = False
        return found

    def check(self) -> None:
        """Raises :class:`RoutingError`: a job cannot be summed at its root."""
        network, free = self.network, self.network.slots.copy()
        for demand in self.demands:
            root, (racks, _) = demand.root(network), demand.racks(network)
            name, job = network.names[root], f"job {demand.name!r}: "
            if not network.sums[root]:
                raise RoutingError(f"{job}{name}, which would make its results, does not sum")
            lost = racks[self.paths.ways.hops[racks, root] >= FAR]
            if len(lost):
                raise RoutingError(
                    f"{job}no path of links that are up joins {network.names[lost[0]]} and {name}"
                )
            most = network.most_children**2
            if len(demand) > most:
                raise RoutingError(
                    f"{job}{len(demand)} workers: one level of switches below {name} sums at most"
                    f" {most}"
                )
            need = slots_for(demand, 1.0)
            if free[root] < need:
                raise RoutingError(f"{job}{name} has {free[root]} free slots of {need}")
            if free[root] < NO_LIMIT:
                free[root] -= need


def space_of(
    situation: Situation,
    *,
    formulation: str = "path",
    most_ways: int = MOST_WAYS,
    small: int = SMALL,
) -> Space:
    """``small``: what may be as it is, see :data:`SMALL`. Raises :class:`RoutingError`."""
    network, demands = situation.network, situation.demands
    if formulation not in FORMULATIONS:
        raise RoutingError(f"policy 'grid': formulation {formulation!r}: want path or rate")
    most = most_ways if formulation == "path" else 1
    is_small = _columns(network, demands, most) <= small
    space = Space(
        network,
        demands,
        situation.base,
        Paths(situation.ways, most, spare=int(is_small and most > 1)),
        None if is_small else fold_of(network),
        np.ones(len(network), dtype=np.int64),
    )
    space.check()
    return space


def _columns(network: Network, demands: Sequence[Demand], most_ways: int) -> int:
    racks = sum(len(it.racks(network)[0]) for it in demands)
    return racks * int(network.sums.sum()) * most_ways


@dataclass(frozen=True)
class Part:
    """Workers of a rack that are summed at one place."""

    rack: int
    count: int
    way: Way
    """From the rack to where they are summed."""


def tree_of(
    network: Network, demand: Demand, parts: Sequence[Part], up: dict[int, Way]
) -> PlannedTree:
    """Ranks of a rack in turn. ``up``: by point but the root, the way there."""
    places = demand.places(network)
    first = np.full(len(places), -1, dtype=np.int64)
    ways: dict[tuple[int, int], Way] = {}
    for part in parts:
        ranks = np.flatnonzero((places == part.rack) & (first < 0))[: part.count]
        first[ranks] = part.way[-1]
        ways[part.rack, part.way[-1]] = part.way
    return PlannedTree(demand.root(network), up, first, ways)
