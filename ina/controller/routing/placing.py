"""Which place sums which workers, stripe by stripe, one level deep: by marginal prices. Pure.

As in :mod:`ina.controller.routing.stripes` prices rise exponentially with loads. What is moved is
all workers of one stripe that meet at a place, those of one rack, or one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from ina.controller.errors import RoutingError
from ina.controller.routing.demand import Demand
from ina.controller.routing.grid_lp import counted
from ina.controller.routing.loads import slots_for
from ina.controller.routing.network import Bools, Floats, Ints
from ina.controller.routing.plan import Plan, PlannedTree, Stripe, merged
from ina.controller.routing.rounding import Dealt
from ina.controller.routing.space import Part, Space, tree_of

STEEPNESS = (12.0, 24.0, 48.0, 96.0)
"""By pass, as in :mod:`ina.controller.routing.stripes`; flatter prices only undo what the program
says."""
HOT = 0.005
"""Of the price of what is most loaded: to what loads nothing as dear, passes pay no heed."""

Parts: TypeAlias = "list[tuple[int, int]]"
"""Of one stripe: racks, as the job numbers them, and how many workers of each."""
State: TypeAlias = "list[tuple[Ints, Ints, Ints]]"


@dataclass(eq=False)
class Job:
    """Of one: its points (the root is the last), and what of each stripe is at which."""

    demand: Demand
    root: int
    racks: Ints
    counts: Ints
    """(racks,): workers."""
    points: Ints
    options: list[Ints]
    """By rack: numbers of points that it may have."""
    may: Bools
    """(racks, points): the same."""
    ways_in: list[Ints]
    """By rack: (options, ways, resources): cables, the place behind them."""
    ways_up: Ints
    """(points but the root, ways, resources): the root behind the cables."""
    unit: Floats
    """(resources,): what one contribution of one stripe adds to a utilisation."""
    held: Ints
    """(stripes, racks, points): workers."""
    way_in: Ints
    """(stripes, racks, points): which."""
    way_up: Ints
    """(stripes, points): which; -1: the point is not in use."""
    children: Ints
    """(stripes, points)"""
    slots: Ints
    """(stripes + 1,): that so many stripes take at a place."""
    rises: dict[int, Floats] = field(default_factory=dict)

    @property
    def stripes(self) -> int:
        """How many it has."""
        return len(self.held)

    def ways_to(self, rack: int, point: int) -> Ints:
        """(ways, resources)."""
        which = self.options[rack]
        ways: Ints = self.ways_in[rack][which.searchsorted(point)]
        return ways


class Placing:
    """The state of all jobs. Every move that is made can be carried out."""

    def __init__(
        self, space: Space, goal_s: float, *, formulation: str, rng: np.random.Generator
    ) -> None:
        """``goal_s``: what no plan is below."""
        self._space, self._rng = space, rng
        network = space.network
        self._count = len(network.rates) + len(network)
        # Behind cables and places: one that costs nothing, for short ways, and one of no end.
        base = np.concatenate(space.base.seconds(network)[:2]) / goal_s
        is_counted = counted(network, space.demands, formulation)
        self._load = np.concatenate([np.where(is_counted, base, 0.0), np.zeros(2)])
        self._weights = np.concatenate([is_counted, [0.0, 1.0]])
        self._free = network.slots.copy()
        self.jobs = [self._job(it, goal_s) for it in space.demands]
        for job in self.jobs:
            self._free[job.root] -= job.slots[-1]
        self._steeper(STEEPNESS[0])

    @property
    def utilisation(self) -> float:
        """The largest: 1 is the goal."""
        return float(self._load[: self._count].max(initial=0.0))

    def clear(self) -> None:
        """No worker is summed anywhere."""
        for job in self.jobs:
            for stripe in range(job.stripes):
                self._drop(job, stripe)

    def start(self, wanted: Sequence[Dealt]) -> None:
        """From nothing, as dealt out by job. Raises :class:`RoutingError`: one finds no room."""
        self._steeper(STEEPNESS[0])
        for stripe in range(max(job.stripes for job in self.jobs)):
            for number in self._rng.permutation(len(self.jobs)).tolist():
                job, dealt = self.jobs[number], wanted[number]
                if stripe < job.stripes:
                    self._start(job, stripe, dealt.workers[stripe], dealt.kind_of[job.points])

    def improve(self, *, enough: float = 1.0) -> None:
        """Ends with the best state that it saw; ``enough``: as good a utilisation as any."""
        best, best_state = self.utilisation, self.state()
        for steepness in STEEPNESS:
            if best <= enough * (1 + 1e-9):
                break
            self._steeper(steepness)
            most = max(job.stripes for job in self.jobs)
            for stripe in self._rng.permutation(most):
                for number in self._rng.permutation(len(self.jobs)):
                    if stripe < self.jobs[int(number)].stripes:
                        self._improve(self.jobs[int(number)], int(stripe))
            if self.utilisation < best:
                best, best_state = self.utilisation, self.state()
        if best < self.utilisation:
            self.restore(best_state)

    def state(self) -> State:
        """What :meth:`restore` takes."""
        return [(it.held.copy(), it.way_in.copy(), it.way_up.copy()) for it in self.jobs]

    def restore(self, state: State) -> None:
        """Of the same jobs."""
        for job, (held, way_in, way_up) in zip(self.jobs, state, strict=True):
            for stripe in range(job.stripes):
                same = (job.held[stripe] == held[stripe]).all() and (
                    (job.way_in[stripe] == way_in[stripe])[held[stripe] > 0].all()
                    and (job.way_up[stripe] == way_up[stripe]).all()
                )
                if not same:
                    self._drop(job, stripe)
                    for rack, point in zip(*np.nonzero(held[stripe]), strict=True):
                        parts = [(int(rack), int(held[stripe, rack, point]))]
                        ways = (way_in[stripe, rack, point], way_up[stripe, point])
                        self._put(job, stripe, int(point), parts, *map(int, ways))

    def plan(self) -> Plan:
        """With like trees of a job as one."""
        return Plan(
            {
                job.demand.name: merged(
                    tuple(Stripe(1 / job.stripes, self._tree(job, n)) for n in range(job.stripes))
                )
                for job in self.jobs
            }
        )

    # -- made once -------------------------------------------------------------------------------

    def _job(self, demand: Demand, goal_s: float) -> Job:
        space, network = self._space, self._space.network
        root, (racks, counts) = demand.root(network), demand.racks(network)
        every = [space.points(int(rack), root) for rack in racks]
        points = np.array([*sorted({it for of in every for it in of}), root], dtype=np.int64)
        number_of = {int(it): number for number, it in enumerate(points)}
        options = [np.array([number_of[it] for it in (*of, root)]) for of in every]
        may = np.zeros((len(racks), len(points)), dtype=np.bool_)
        for rack, which in enumerate(options):
            may[rack, which] = True
        stripes = demand.stripes
        rates = np.concatenate([network.rates, network.processing])
        with np.errstate(divide="ignore"):
            unit = demand.step_bytes / (stripes * goal_s * rates)
        shape = (stripes, len(racks), len(points))
        return Job(
            demand,
            root,
            racks,
            counts,
            points,
            options,
            may,
            [
                self._table([(int(rack), int(points[it])) for it in which])
                for rack, which in zip(racks, options, strict=True)
            ],
            self._table([(int(it), root) for it in points[:-1]]),
            np.concatenate([unit, [0.0, 1.0]]),
            np.zeros(shape, dtype=np.int64),
            np.zeros(shape, dtype=np.int64),
            np.full((stripes, len(points)), -1, dtype=np.int64),
            np.zeros((stripes, len(points)), dtype=np.int64),
            np.array([slots_for(demand, it / stripes) for it in range(stripes + 1)]),
        )

    def _table(self, pairs: list[tuple[int, int]]) -> Ints:
        cables = self._space.paths.table(pairs, pad=self._count, absent=self._count + 1)
        ends = np.array([end for _, end in pairs], dtype=np.int64)[:, None, None]
        places = np.broadcast_to(len(self._space.network.rates) + ends, (*cables.shape[:2], 1))
        return np.concatenate([cables, places], axis=2)

    # -- prices ----------------------------------------------------------------------------------

    def _steeper(self, steepness: float) -> None:
        self._eta = steepness / max(1.0, self.utilisation)
        self._top = self.utilisation
        self._price = self._priced(np.arange(self._count + 2))
        self._price[-1] = np.inf
        for job in self.jobs:
            job.rises.clear()

    def _priced(self, which: Ints) -> Floats:
        prices: Floats = np.exp(np.minimum(self._eta * (self._load[which] - self._top), 300.0))
        prices *= self._weights[which]
        return prices

    def _marginal(self, job: Job, count: int) -> Floats:
        """(resources,): of so many contributions of a stripe."""
        rise = job.rises.get(count)
        if rise is None:
            rise = np.expm1(np.minimum(self._eta * count * job.unit, 300.0))
            job.rises[count] = rise
        found: Floats = self._price * rise
        return found

    def _costs(self, job: Job, stripe: int, parts: Parts) -> tuple[Ints, Floats]:
        """Points that may sum all these, and the cost of each; inf: it cannot, as things are."""
        which = job.options[parts[0][0]]
        for rack, _ in parts[1:]:
            which = which[job.may[rack, which]]
        cost = np.zeros(len(which))
        for rack, count in parts:
            ways = job.ways_in[rack]
            if len(which) < len(ways):
                ways = ways[np.searchsorted(job.options[rack], which)]
            cost += self._marginal(job, count)[ways[:, :, :-1]].sum(axis=2).min(axis=1)
        total = sum(count for _, count in parts)
        cost += self._marginal(job, total)[len(self._space.network.rates) + job.points[which]]
        most, children = self._space.network.most_children, job.children[stripe]
        cost[children[which] + total > most] = np.inf
        closed = job.way_up[stripe, which] < 0
        closed[-1] = False  # the root
        if closed.any():
            if children[-1] + 1 > most:
                cost[closed] = np.inf
            else:
                opened = which[closed]
                up = self._marginal(job, 1)[job.ways_up[opened]].sum(axis=2).min(axis=1)
                if job.demand.slots:
                    free = self._free[job.points[opened]]
                    up[self._slots_more(job)[opened] > free] = np.inf
                cost[closed] += up
        return which, cost

    def _slots_more(self, job: Job) -> Ints:
        """(points but the root,): that one more stripe takes."""
        used = (job.way_up[:, :-1] >= 0).sum(axis=0)
        more: Ints = job.slots[np.minimum(used + 1, job.stripes)] - job.slots[used]
        return more

    # -- moves -----------------------------------------------------------------------------------

    def _put(
        self, job: Job, stripe: int, point: int, parts: Parts, way_in: int = -1, way_up: int = -1
    ) -> None:
        """By the cheapest ways, unless these are given."""
        if point < len(job.points) - 1 and job.way_up[stripe, point] < 0:
            if way_up < 0:
                way_up = self._cheapest(job, 1, job.ways_up[point])
            self._free[job.points[point]] -= self._slots_more(job)[point]
            job.way_up[stripe, point] = way_up
            job.children[stripe, -1] += 1
            self._carry(job, job.ways_up[point, way_up], 1)
        for rack, count in parts:
            ways, chosen = job.ways_to(rack, point), way_in
            if job.held[stripe, rack, point]:
                chosen = int(job.way_in[stripe, rack, point])
            elif chosen < 0:
                chosen = self._cheapest(job, count, ways)
            job.way_in[stripe, rack, point] = chosen
            job.held[stripe, rack, point] += count
            job.children[stripe, point] += count
            self._carry(job, ways[chosen], count)

    def _cheapest(self, job: Job, count: int, ways: Ints) -> int:
        return int(self._marginal(job, count)[ways].sum(axis=1).argmin()) if len(ways) > 1 else 0

    def _take(self, job: Job, stripe: int, point: int, parts: Parts) -> None:
        for rack, count in parts:
            job.held[stripe, rack, point] -= count
            job.children[stripe, point] -= count
            ways = job.ways_to(rack, point)
            self._carry(job, ways[job.way_in[stripe, rack, point]], -count)
        if point < len(job.points) - 1 and not job.children[stripe, point]:
            self._carry(job, job.ways_up[point, job.way_up[stripe, point]], -1)
            job.way_up[stripe, point] = -1
            job.children[stripe, -1] -= 1
            self._free[job.points[point]] += self._slots_more(job)[point]

    def _carry(self, job: Job, which: Ints, count: int) -> None:
        self._load[which] += count * job.unit[which]
        self._price[which] = self._priced(which)

    def _drop(self, job: Job, stripe: int) -> None:
        for point in np.flatnonzero(job.held[stripe].any(axis=0)):
            self._take(job, stripe, int(point), self._at(job, stripe, int(point)))

    @staticmethod
    def _at(job: Job, stripe: int, point: int) -> Parts:
        held = job.held[stripe, :, point]
        return [(int(rack), int(held[rack])) for rack in np.flatnonzero(held)]

    def _improve(self, job: Job, stripe: int) -> None:
        for point in np.flatnonzero(job.way_up[stripe] >= 0).tolist():
            parts = self._at(job, stripe, point)
            if len(parts) > 1 and self._is_hot(job, stripe, point, parts):
                self._again(job, stripe, point, parts)
        for rack, point in np.argwhere(job.held[stripe]).tolist():
            count = int(job.held[stripe, rack, point])
            if count and self._is_hot(job, stripe, point, [(rack, count)]):
                point = self._again(job, stripe, point, [(rack, count)])
                if count > 1:
                    self._again(job, stripe, point, [(rack, 1)])

    def _is_hot(self, job: Job, stripe: int, point: int, parts: Parts) -> bool:
        """Whether something that these load is about as loaded as anything is."""
        if point < len(job.points) - 1:
            way = job.ways_up[point, job.way_up[stripe, point]]
            if self._price[way].max() > HOT:
                return True
        return any(
            self._price[job.ways_to(rack, point)[job.way_in[stripe, rack, point]]].max() > HOT
            for rack, _ in parts
        )

    def _again(self, job: Job, stripe: int, point: int, parts: Parts) -> int:
        """Takes them out, and puts them where it is cheapest then."""
        self._take(job, stripe, point, parts)
        which, costs = self._costs(job, stripe, parts)
        point = int(which[costs.argmin()])
        self._put(job, stripe, point, parts)
        return point

    # -- the first state -------------------------------------------------------------------------

    def _start(self, job: Job, stripe: int, wanted: Ints, kinds: Ints) -> None:
        left: Parts = []
        for kind in np.flatnonzero(wanted.any(axis=0)):
            within = kinds == kind
            for parts in _bundles(wanted[:, kind], self._space.network.most_children):
                if not self._try(job, stripe, parts, within):
                    left += parts
        anywhere = np.ones(len(job.points), dtype=np.bool_)
        for part in left:
            if not self._try(job, stripe, [part], anywhere):
                self._pack(job, stripe)
                return

    def _try(self, job: Job, stripe: int, parts: Parts, within: Bools) -> bool:
        """Puts them at the cheapest of some points; whether there is one."""
        which, costs = self._costs(job, stripe, parts)
        costs[~within[which]] = np.inf
        if not np.isfinite(costs).any():
            return False
        self._put(job, stripe, int(which[costs.argmin()]), parts)
        return True

    def _pack(self, job: Job, stripe: int) -> None:
        """As few points as can be, each with as many workers as it may have."""
        self._drop(job, stripe)
        most, workers = self._space.network.most_children, len(job.demand)
        full = max(-(-(workers - most) // (most - 1)), 0) if most > 1 else 0
        for number, parts in enumerate(_bundles(job.counts, most, whole=False)):
            is_root = np.arange(len(job.points)) == len(job.points) - 1
            if not self._try(job, stripe, parts, is_root if number >= full else ~is_root):
                raise RoutingError(
                    f"job {job.demand.name!r}: its {workers} workers find no switches with room,"
                    f" each of {most} children, one level below"
                    f" {self._space.network.names[job.root]}"
                )

    def _tree(self, job: Job, stripe: int) -> PlannedTree:
        between, held = self._space.paths.between, job.held[stripe]
        parts = []
        for rack, point in zip(*np.nonzero(held), strict=True):
            ways = between(int(job.racks[rack]), int(job.points[point]))
            way = ways[job.way_in[stripe, rack, point]]
            parts.append(Part(int(job.racks[rack]), int(held[rack, point]), way))
        up = {
            int(job.points[it]): between(int(job.points[it]), job.root)[job.way_up[stripe, it]]
            for it in np.flatnonzero(job.way_up[stripe] >= 0)
        }
        return tree_of(self._space.network, job.demand, parts, up)


def _bundles(counts: Ints, most: int, *, whole: bool = True) -> list[Parts]:
    """Racks with workers in turn, at most so many together. ``whole``: those of a rack stay
    together where they are not too many by themselves."""
    found: list[Parts] = [[]]
    room = most
    for rack in np.flatnonzero(counts):
        left = int(counts[rack])
        if whole and room < left <= most:
            found.append([])
            room = most
        while left:
            if not room:
                found.append([])
                room = most
            some = min(left, room)
            found[-1].append((int(rack), some))
            left, room = left - some, room - some
    return [it for it in found if it]
