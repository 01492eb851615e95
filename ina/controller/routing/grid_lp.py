"""GRID as a linear program: which share of each rack's workers is summed where. Pure.

The largest utilisation is made least, with what workers send as given: so there is no product of a
rate and a choice, as in the paper's formulation A. Here that one is ``rate``: it counts what places
sum, and cables of roots. Formulation B is ``path``: every cable counts, and each way has a share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ina.controller.routing.demand import Demand
from ina.controller.routing.loads import slots_for
from ina.controller.routing.lp import DEFAULT_LIMIT_S, LpError, Program, Solution, Solver
from ina.controller.routing.network import NO_LIMIT, Bools, Floats, Ints, Network
from ina.controller.routing.plan import Plan, Stripe
from ina.controller.routing.space import Part, Space, tree_of

SLACK = 1e-4
"""By how much the utilisation may rise where fewer points are asked for."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Of one job: how its workers are dealt out by a solution."""

    points: Ints
    """(points,): places, the root last."""
    racks: Ints
    counts: Floats
    """(racks, points): workers."""


@dataclass(eq=False)
class _Rows:
    """Rows being written: entries of the loads, and of all others."""

    row: list[int] = field(default_factory=list)
    column: list[int] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)

    def add(self, terms: list[tuple[int, float]], lower: float, upper: float) -> None:
        self.row += [len(self.lower)] * len(terms)
        self.column += [it for it, _ in terms]
        self.value += [it for _, it in terms]
        self.lower.append(lower)
        self.upper.append(upper)


@dataclass(frozen=True)
class _Into:
    """A column: workers of a rack that are summed at a point, and come there by one way."""

    job: int
    rack: int
    """As the job numbers its racks."""
    point: int
    which: int
    column: int


@dataclass(frozen=True)
class _Up:
    """A column: whether a job has a point, whose sum goes to the root by one way."""

    job: int
    point: int
    which: int
    column: int


class GridProgram:
    """Of a space, which is solved as it is: give it :attr:`Space.small`."""

    def __init__(
        self, space: Space, goal_s: float, *, formulation: str = "path", integral: bool = False
    ) -> None:
        """``goal_s``: about what will be reached; utilisations are of this."""
        self.space, self.goal_s, self.integral = space, goal_s, integral
        network = space.network
        self._counted = counted(network, space.demands, formulation)
        base_s = np.concatenate(space.base.seconds(network)[:2])
        self._base = np.where(self._counted, base_s, 0.0) / goal_s
        self._into: list[_Into] = []
        self._up: list[_Up] = []
        self._loads: list[tuple[int, int, float]] = []  # resource, column, seconds
        self._rows = _Rows()
        self._slots: dict[int, list[tuple[int, float]]] = {}
        self._held: dict[int, int] = {}
        self._bounds: list[tuple[float, bool]] = [(np.inf, False)]  # of columns; U is the first
        for number in range(len(space.demands)):
            self._add_job(number)
        self._program = self._assembled()

    @property
    def count(self) -> int:
        """Of columns."""
        return self._program.count

    def solver(self, wanted_by: str, limit_s: float = DEFAULT_LIMIT_S) -> Solver:
        """Of the least utilisation."""
        return Solver(
            self._program,
            wanted_by=wanted_by,
            limit_s=limit_s,
            infeasible="one level of switches below the roots cannot sum all workers: no switch has"
            f" more than {self.space.network.most_children} children, or than its free slots",
        )

    def fewest_points(self, solver: Solver, solution: Solution) -> Solution:
        """As good, with as few points as there can be: each is one more stream to the root. The
        given one where that takes too long."""
        solver.limit_column(0, 0.0, max(solution.values[0], 0.0) * (1 + SLACK) + SLACK * 1e-3)
        costs = np.zeros(self._program.count)
        costs[[it.column for it in self._up]] = 1.0
        solver.set_costs(costs)
        try:
            return solver.solve()
        except LpError:
            return solution

    def shares(self, solution: Solution) -> list[Shares]:
        """By job."""
        network, found = self.space.network, []
        for demand in self.space.demands:
            racks, root = demand.racks(network)[0], demand.root(network)
            points = sorted({it for rack in racks for it in self.space.points(int(rack), root)})
            places = np.array([*points, root], dtype=np.int64)
            found.append(Shares(places, racks, np.zeros((len(racks), len(places)))))
        where = [{int(it): n for n, it in enumerate(shares.points)} for shares in found]
        for into in self._into:
            value = max(float(solution.values[into.column]), 0.0)
            found[into.job].counts[into.rack, where[into.job][into.point]] += value
        return found

    def plan(self, solution: Solution) -> Plan:
        """Of one with integers: one tree a job."""
        space = self.space
        parts: list[list[Part]] = [[] for _ in space.demands]
        up: list[dict[int, tuple[int, ...]]] = [{} for _ in space.demands]
        for into in self._into:
            count = round(float(solution.values[into.column]))
            if count:
                rack = int(space.demands[into.job].racks(space.network)[0][into.rack])
                way = space.paths.between(rack, into.point)[into.which]
                parts[into.job].append(Part(rack, count, way))
        used = [{it.way[-1] for it in of_job} for of_job in parts]
        for it in self._up:
            if solution.values[it.column] > 0.5 and it.point in used[it.job]:
                root = space.demands[it.job].root(space.network)
                up[it.job][it.point] = space.paths.between(it.point, root)[it.which]
        return Plan(
            {
                it.name: (Stripe(1.0, tree_of(space.network, it, parts[n], up[n])),)
                for n, it in enumerate(space.demands)
            }
        )

    def _column(self, upper: float, integral: bool) -> int:
        self._bounds.append((upper, integral and self.integral))
        return len(self._bounds) - 1

    def _add_job(self, number: int) -> None:
        space, network = self.space, self.space.network
        demand = space.demands[number]
        root, (racks, counts) = demand.root(network), demand.racks(network)
        most = float(network.most_children)
        opened: dict[int, list[tuple[int, float]]] = {}
        children: dict[int, list[tuple[int, float]]] = {root: []}
        for group, (rack, count) in enumerate(zip(racks.tolist(), counts.tolist(), strict=True)):
            everywhere: list[tuple[int, float]] = []
            for point in (*space.points(rack, root), root):
                if point not in opened and point != root:
                    opened[point] = self._open(number, demand, point, root)
                    children[root] += opened[point]
                into = self._come(number, demand, (group, rack, count), point)
                everywhere += into
                children.setdefault(point, []).extend(into)
                if point != root:
                    many = [(column, -float(count)) for column, _ in opened[point]]
                    self._rows.add([*into, *many], -np.inf, 0.0)
            self._rows.add(everywhere, float(count), float(count))
        for point, terms in opened.items():
            many = [(column, -most) for column, _ in terms]
            self._rows.add([*children[point], *many], -np.inf, 0.0)
        self._rows.add(children[root], -np.inf, most * float(space.members[root]))
        self._held[root] = self._held.get(root, 0) + slots_for(demand, 1.0)

    def _open(self, number: int, demand: Demand, point: int, root: int) -> list[tuple[int, float]]:
        """Columns: whether a job has this point, by its way to the root."""
        found = []
        members = float(self.space.members[point])
        for which, way in enumerate(self.space.paths.between(point, root)):
            column = self._column(members, True)
            self._up.append(_Up(number, point, which, column))
            found.append((column, 1.0))
            self._load(demand, self.space.paths.cables(way), root, column)
            slots = slots_for(demand, 1.0) if self.integral else demand.slots
            self._slots.setdefault(point, []).append((column, float(slots)))
        if len(found) > 1:
            self._rows.add(found, -np.inf, members)
        return found

    def _come(
        self, number: int, demand: Demand, group: tuple[int, int, int], point: int
    ) -> list[tuple[int, float]]:
        """Columns: how many workers of a rack are summed at a point, by their way there."""
        found, (index, rack, count) = [], group
        ways = self.space.paths.between(rack, point)
        for which, way in enumerate(ways):
            column = self._column(float(count), True)
            self._into.append(_Into(number, index, point, which, column))
            found.append((column, 1.0))
            self._load(demand, self.space.paths.cables(way), point, column)
        if self.integral and len(ways) > 1 and count > 1:  # all of them by one way
            chosen = [(self._column(1.0, True), 1.0) for _ in ways]
            self._rows.add(chosen, -np.inf, 1.0)
            for (column, _), (choice, _) in zip(found, chosen, strict=True):
                self._rows.add([(column, 1.0), (choice, -float(count))], -np.inf, 0.0)
        return found

    def _load(self, demand: Demand, cables: list[int], place: int, column: int) -> None:
        network = self.space.network
        for cable in cables:
            self._loads.append((cable, column, demand.step_bytes / network.rates[cable]))
        seconds = demand.step_bytes / network.processing[place]
        self._loads.append((len(network.rates) + place, column, seconds))

    def _assembled(self) -> Program:
        network, program = self.space.network, Program()
        program.columns(1, cost=1.0)
        kinds = np.array([it for _, it in self._bounds[1:]], dtype=np.bool_)
        uppers = np.array([it for it, _ in self._bounds[1:]])
        program.columns(len(uppers), upper=uppers, integral=kinds)
        resource, column, seconds = (np.array(it) for it in zip(*self._loads, strict=True))
        keep = self._counted[resource] & (seconds > 0)
        names, which = np.unique(resource[keep], return_inverse=True)
        numbers = np.arange(len(names))
        program.rows(
            len(names),
            (
                np.concatenate([which, numbers]),
                np.concatenate([column[keep], np.zeros(len(names), dtype=np.int64)]),
                np.concatenate([seconds[keep] / self.goal_s, np.full(len(names), -1.0)]),
            ),
            upper=-self._base[names],
        )
        for place in self._held:
            self._slots.setdefault(place, [])
        for place, terms in self._slots.items():
            if network.slots[place] < NO_LIMIT:
                self._rows.add(
                    terms, -np.inf, float(network.slots[place] - self._held.get(place, 0))
                )
        rows = self._rows
        program.rows(
            len(rows.lower), (rows.row, rows.column, rows.value), lower=rows.lower, upper=rows.upper
        )
        return program


def counted(network: Network, demands: Sequence[Demand], formulation: str) -> Bools:
    """(cables and places,): those whose loads a formulation knows of."""
    found = np.ones(len(network.rates) + len(network), dtype=np.bool_)
    if formulation == "rate":
        roots = [it.root(network) for it in demands]
        found[: len(network.rates)] = np.isin(network.ends, roots).any(axis=1)
    return found
