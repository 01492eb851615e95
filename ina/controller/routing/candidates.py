"""Trees that a job may have, one a root: every rack's shortest way there. Pure.

Parts meet on the way, and each place that sums takes all that come through it: so a tree depends on
nothing but its root, and no switch between two nodes need forward by what the plan says. In a
fat-tree these are the trees that use as few cables as can be, each named by its core (for a job of
one pod: by an aggregation switch).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ina.controller.errors import RoutingError
from ina.controller.routing.demand import Demand
from ina.controller.routing.forwarded import forwarded_trees
from ina.controller.routing.loads import loads_of_job, slots_for
from ina.controller.routing.network import Bools, Floats, Ints, Network, NetworkWays
from ina.controller.routing.plan import PlannedTree, Stripe, Way
from ina.fabric.ways import FAR

MOST = 64
"""Candidates of a job."""
_SPREAD = 6
"""Choices of ways, where some places on them only forward."""
_FEW = 4
"""Slow places, of which each combination may be done without: 16 times as many candidates."""
_FORWARDED = 4
"""Trees by frames' own ways, where no tree of shortest ways has few enough levels."""
SPARE_CABLES = 2
"""More than the fewest, that a candidate may use: under failures some roots are reached by a
detour, which is no reason to leave them out."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Of one job."""

    demand: Demand
    ways: NetworkWays
    roots: Ints
    """(candidates,)"""
    nodes: Bools
    """(candidates, places): whether a place sums there."""
    columns: Ints
    """Resources that any of them needs: cables, then places behind them, by number."""
    seconds: Floats
    """(candidates, columns): of a step of the whole job."""
    variants: Ints
    """(candidates,): of the ways that racks take to each root."""
    kept: tuple[PlannedTree, ...] = ()
    """The last of the candidates: trees that were found otherwise."""

    def __len__(self) -> int:
        return len(self.roots)

    @cached_property
    def dense(self) -> Floats:
        """(candidates, resources): as ``seconds``, of all resources."""
        return _spread_out(self, np.arange(_resources(self.ways.network)))

    def chosen(self, numbers: Ints) -> Candidates:
        """Some of them alone; none of those that were kept."""
        return replace(
            self,
            roots=self.roots[numbers],
            nodes=self.nodes[numbers],
            seconds=self.seconds[numbers],
            variants=self.variants[numbers],
            kept=(),
        )

    def tree(self, number: int) -> PlannedTree:
        """One of them."""
        found = len(self) - len(self.kept)
        if number >= found:
            return self.kept[number - found]
        network, root = self.ways.network, int(self.roots[number])
        towards = self.ways.variant(int(self.variants[number]))[0][root]
        nodes = self.nodes[number]
        up: dict[int, Way] = {}
        for node in np.flatnonzero(nodes):
            if node != root:
                up[int(node)] = _climb(int(towards[node]), towards, nodes, (int(node),))
        places = self.demand.places(network)
        ways = {}
        first = np.zeros(len(network), dtype=np.int64)
        for rack in np.unique(places):
            way = _climb(int(rack), towards, nodes, ())
            ways[int(rack), way[-1]] = way
            first[rack] = way[-1]
        return PlannedTree(root, up, first[places], ways)


def _climb(place: int, towards: Ints, nodes: Bools, way: Way) -> Way:
    """On from a place to the next node."""
    while True:
        way = (*way, place)
        if nodes[place]:
            return way
        place = int(towards[place])


def candidates_of(
    ways: NetworkWays, demand: Demand, *, most: int = MOST, free: Ints | None = None
) -> Candidates:
    """Those that use fewest cables, among them as many roots as there may be.

    ``free``: slots at each place; by default the network's. Places without room for one of the
    job's stripes do not sum it. Where places are slow, some candidates do without them. Raises
    :class:`RoutingError`: there is none.
    """
    network = ways.network
    racks, _ = demand.racks(network)
    _check_joined(ways, demand, racks)
    sums = network.sums & ((network.slots if free is None else free) >= _stripe_slots(demand))
    roots = demand.may_be_root(sums & (ways.hops[racks] < FAR).all(axis=0))
    if not len(roots):
        raise RoutingError(f"job {demand.name!r}: {_why_none(network, demand, sums)}")
    near = _near(ways, roots, racks, most)
    masks = list(_masks(ways, near, racks, sums))
    # What forwards sends on every part that comes: it had better not all take one way.
    spreads = network.forwards is None and not all(mask.all() for mask in masks)
    try:
        return _made(ways, demand, near, masks, most, _SPREAD if spreads else 1)
    except RoutingError:
        trees = forwarded_trees(ways, demand, sums, most=_FORWARDED)
        if not trees:
            raise
        return trees_alone(ways, demand, trees)


def candidates_at(
    ways: NetworkWays, demand: Demand, roots: Ints, free: Ints | None = None
) -> Candidates:
    """Of these roots alone, for a job whose lanes are all summed there. Raises
    :class:`RoutingError`: none of them can be."""
    network = ways.network
    sums = network.sums & ((network.slots if free is None else free) >= demand.slots)
    if not sums[roots].any():
        raise RoutingError(
            f"job {demand.name!r}: {network.names[roots[0]]}, which would make its results, has no"
            f" {demand.slots} free slots"
        )
    return _made(ways, demand, roots[sums[roots]], [sums], len(roots))


def _masks(ways: NetworkWays, roots: Ints, racks: Ints, sums: Bools) -> Iterator[Bools]:
    """Which places sum: all; where few are slow all but some of these, in each combination; where
    many are, all but tops of racks."""
    network = ways.network
    slow = np.flatnonzero(sums & np.isfinite(network.processing))
    slow = slow[(ways.hops[slow][:, racks] < FAR).any(axis=1)]
    if len(slow) > _FEW:
        yield sums
        tops = np.intersect1d(slow, racks)
        if len(tops):
            without = sums.copy()
            without[tops] = False
            yield without
        return
    for chosen in range(1 << len(slow)):
        without = sums.copy()
        without[slow[[bool(chosen >> at & 1) for at in range(len(slow))]]] = False
        if without[roots].any():
            yield without


def _made(
    ways: NetworkWays,
    demand: Demand,
    roots: Ints,
    masks: Sequence[Bools],
    most: int,
    variants: int = 1,
) -> Candidates:
    network = ways.network
    pairs = [(roots[mask[roots]], mask) for mask in masks]
    sums = np.concatenate([np.tile(mask, (len(its), 1)) for its, mask in pairs])
    of_each = np.concatenate([its for its, _ in pairs])
    variant = np.repeat(np.arange(variants), len(of_each))
    flows = _Flows(ways, np.tile(of_each, variants), np.tile(sums, (variants, 1)), variant)
    found = flows.of(*demand.racks(network))
    most_levels = demand.most_levels(network)
    fits = (found.children.max(axis=1) <= network.most_children) & (found.levels <= most_levels)
    if not fits.any():
        raise RoutingError(
            f"job {demand.name!r}: no tree of at most {most_levels} levels of switches, of"
            f" {network.most_children} children each, has all of its workers"
        )
    used = (found.copies > 0).sum(axis=1)
    fits &= used <= used[fits].min() + SPARE_CABLES
    chosen = _different(found, np.flatnonzero(fits), used, most * len(masks) * variants)
    cable_s = demand.step_bytes * found.copies[chosen] / network.rates[found.cables]
    summing = np.flatnonzero(np.isfinite(network.processing))
    place_s = demand.step_bytes * found.children[chosen][:, summing] / network.processing[summing]
    columns = np.concatenate([found.cables, len(network.rates) + summing])
    seconds = np.concatenate([cable_s, place_s], axis=1)
    needed = seconds.any(axis=0)
    nodes = found.children[chosen] > 0
    return Candidates(
        *(demand, ways, found.roots[chosen], nodes, columns[needed], seconds[:, needed]),
        variants=variant[chosen],
    )


def with_more(them: Candidates, more: Candidates) -> Candidates:
    """With those of the same job, of the same ways, that are not among them."""
    columns = np.union1d(them.columns, more.columns)
    had, new = _spread_out(them, columns), _spread_out(more, columns)
    known = {(row.tobytes(), nodes.tobytes()) for row, nodes in zip(had, them.nodes, strict=True)}
    fresh = [
        number
        for number, (row, nodes) in enumerate(zip(new, more.nodes, strict=True))
        if (row.tobytes(), nodes.tobytes()) not in known
    ]
    first = len(them) - len(them.kept)  # what was kept stays last

    def put(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.concatenate([one[:first], other[fresh], one[first:]])

    return replace(
        them,
        roots=put(them.roots, more.roots),
        nodes=put(them.nodes, more.nodes),
        columns=columns,
        seconds=put(had, new),
        variants=put(them.variants, more.variants),
    )


def with_trees(them: Candidates, trees: Sequence[PlannedTree]) -> Candidates:
    """With further ones, however they were found."""
    if not trees:
        return them
    network, demand = them.ways.network, them.demand
    loads = [loads_of_job(network, demand, (Stripe(1.0, tree),)) for tree in trees]
    rows = np.array([np.concatenate(it.seconds(network)[:2]) for it in loads])
    columns = np.union1d(them.columns, np.flatnonzero(rows.any(axis=0)))
    nodes = np.zeros((len(trees), len(network)), dtype=np.bool_)
    for number, tree in enumerate(trees):
        nodes[number, list(tree.nodes)] = True
    return replace(
        them,
        roots=np.concatenate([them.roots, [tree.root for tree in trees]]),
        nodes=np.concatenate([them.nodes, nodes]),
        columns=columns,
        seconds=np.concatenate([_spread_out(them, columns), rows[:, columns]]),
        variants=np.concatenate([them.variants, np.zeros(len(trees), dtype=np.int64)]),
        kept=(*them.kept, *trees),
    )


def trees_alone(ways: NetworkWays, demand: Demand, trees: Sequence[PlannedTree]) -> Candidates:
    """Nothing but what it has."""
    places, none = len(ways.network), np.zeros(0, dtype=np.int64)
    empty = np.zeros((0, places), dtype=np.bool_)
    return with_trees(Candidates(demand, ways, none, empty, none, np.zeros((0, 0)), none), trees)


def _spread_out(them: Candidates, columns: Ints) -> Floats:
    """(candidates, columns): ``columns`` has all of theirs, and others that they load nothing."""
    found = np.zeros((len(them), len(columns)))
    found[:, np.searchsorted(columns, them.columns)] = them.seconds
    return found


def _resources(network: Network) -> int:
    return len(network.rates) + len(network)


def _near(ways: NetworkWays, roots: Ints, racks: Ints, most: int) -> Ints:
    """Of many, those that are nearest to all racks, and those that are as near."""
    if len(roots) <= 2 * most:
        return roots
    away = ways.hops[np.ix_(racks, roots)].sum(axis=0, dtype=np.int64)
    last = np.partition(away, 2 * most)[2 * most]
    return _spread(roots[away < last], roots[away == last], 4 * most)


def _spread(all_of: Ints, some_of: Ints, most: int) -> Ints:
    """``most`` numbers: all of the first, and evenly chosen of the others."""
    left = max(most - len(all_of), 0)
    if len(some_of) > left:
        some_of = some_of[np.linspace(0, len(some_of) - 1, left).astype(np.int64)]
    return np.concatenate([all_of[:most], some_of])


@dataclass(frozen=True, eq=False)
class _Found:
    roots: Ints
    cables: Ints
    """Numbers of those that any tree uses."""
    copies: Ints
    """(roots, cables): on each of these."""
    children: Ints
    """(roots, places): contributions to each sum made there; 0: none is."""
    levels: Ints
    """(roots,): of nodes."""
    is_slow: Bools
    """(places,): whether what is summed there counts."""


def _different(found: _Found, numbers: Ints, used: Ints, most: int) -> Ints:
    """Of those that load the same one, which has the fewest levels; those that use the fewest
    cables."""
    seen: dict[bytes, int] = {}
    loads = np.concatenate([found.copies, found.children * found.is_slow], axis=1)
    for number in numbers[np.lexsort((found.levels[numbers], used[numbers]))]:
        seen.setdefault(loads[number].tobytes(), int(number))
    unlike = np.array(list(seen.values()), dtype=np.int64)
    if len(unlike) <= most:
        return unlike
    last = used[unlike[most - 1]]
    return _spread(unlike[used[unlike] < last], unlike[used[unlike] == last], most)


@dataclass(frozen=True, eq=False)
class _Flows:
    """Contributions on their ways to many roots at once, from the farthest places inwards."""

    ways: NetworkWays
    roots: Ints
    sums: Bools
    """(roots, places)"""
    variants: Ints
    """(roots,): of the ways."""

    def of(self, racks: Ints, counts: Ints) -> _Found:
        network, roots = self.ways.network, self.roots
        places = len(network)
        known = [self.ways.variant(int(it)) for it in range(int(self.variants.max()) + 1)]
        next_place, next_cable = (
            np.concatenate(
                [known[it][which][roots[self.variants == it]] for it in range(len(known))]
            ).ravel()
            for which in (0, 1)
        )
        hops = self.ways.hops[roots]
        arrived = np.zeros((len(roots), places), dtype=np.int64)
        arrived[:, racks] = counts
        levels = np.zeros(len(roots) * places, dtype=np.int64)
        flat, sums = arrived.ravel(), self.sums.ravel()  # the same memory
        passed: list[tuple[Ints, Ints, Ints]] = []  # root, cable, copies
        waiting = np.flatnonzero(flat)
        while waiting.size:
            away = hops.ravel()[waiting]
            farthest = away.max()
            now, waiting = waiting[away == farthest], waiting[away < farthest]
            summed = sums[now]
            levels[now] += summed
            if farthest == 0:
                break
            out = np.where(summed, 1, flat[now])
            to = now - now % places + next_place[now]
            passed.append((now // places, next_cable[now], out))
            np.add.at(flat, to, out)
            np.maximum.at(levels, to, levels[now])
            waiting = np.union1d(waiting, to)
        return _Found(
            roots,
            *self._copies(passed),
            np.where(self.sums, arrived, 0),
            levels.reshape(arrived.shape).max(axis=1),
            np.isfinite(network.processing),
        )

    def _copies(self, passed: list[tuple[Ints, Ints, Ints]]) -> tuple[Ints, Ints]:
        empty = np.zeros(0, dtype=np.int64)
        root, cable, out = (np.concatenate([empty, *(it[i] for it in passed)]) for i in range(3))
        cables, column = np.unique(cable, return_inverse=True)
        copies = np.zeros((len(self.roots), len(cables)), dtype=np.int64)
        np.add.at(copies, (root, column), out)
        return cables, copies


def _stripe_slots(demand: Demand) -> int:
    return slots_for(demand, 1 / demand.stripes)


def _check_joined(ways: NetworkWays, demand: Demand, racks: Ints) -> None:
    lost = np.flatnonzero(ways.hops[racks[0], racks] >= FAR)
    if len(lost):
        names = ways.network.names
        raise RoutingError(
            f"job {demand.name!r}: no path of links that are up joins {names[racks[0]]} and"
            f" {names[racks[lost[0]]]}, behind which it has workers"
        )


def _why_none(network: Network, demand: Demand, sums: Bools) -> str:
    if not network.sums.any():
        return "no switch sums"
    if not sums.any():
        return f"no switch has {_stripe_slots(demand)} free slots"
    return "no switch that sums, and has room, is joined to all of its workers"
