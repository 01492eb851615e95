"""``exact``: the best there is, of small networks, by integer programs; others' judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ina.controller.errors import RoutingError
from ina.controller.routing.bounds import Bound
from ina.controller.routing.candidates import Candidates, candidates_of
from ina.controller.routing.grid_lp import GridProgram
from ina.controller.routing.loads import Loads, slots_for
from ina.controller.routing.lp import DEFAULT_LIMIT_S, Program, Solution, Solver
from ina.controller.routing.lp_bounds import at_least, scale_s
from ina.controller.routing.network import NO_LIMIT, Network
from ina.controller.routing.paths import MOST_WAYS
from ina.controller.routing.plan import Plan, Stripe, merged
from ina.controller.routing.policy import Situation
from ina.controller.routing.space import space_of

LARGEST = 20_000
"""Columns of a program."""

SPACES = ("trees", "grid")


@dataclass(frozen=True, eq=False)
class Solved:
    """What the solver says of a situation."""

    plan: Plan
    bound: Bound
    """Proven: no plan of this space is better."""
    is_optimal: bool
    """False: it ran out of time, and a plan between the two may exist."""


@dataclass(frozen=True)
class Exact:
    """The least ``step_s`` of a space of plans. ``trees``: each stripe of a job has any of its
    candidate trees, each of several levels. ``grid``: what policy ``grid`` may choose from with one
    stripe a job: for each worker the place that sums it, and the ways.

    Guarantees the best plan of its space to a millionth, or, where time runs out, the best found,
    with the bound that was proven (:meth:`solve`). Refuses programs of more than ``largest``
    columns: some tens of switches and a few jobs.
    """

    name = "exact"

    space: str = "trees"
    formulation: str = "path"
    """Of ``grid``, see :class:`ina.controller.routing.policies.grid.Grid`."""
    most_ways: int = MOST_WAYS
    """Of ``grid``: between two places."""
    largest: int = LARGEST
    limit_s: float = DEFAULT_LIMIT_S

    def plan(self, situation: Situation) -> Plan:
        """As :class:`Policy` says."""
        return self.solve(situation).plan

    def solve(self, situation: Situation) -> Solved:
        """A plan, and how good it is. Raises :class:`RoutingError`."""
        if self.space not in SPACES:
            raise RoutingError(f"policy 'exact': space {self.space!r}: want trees or grid")
        if not situation.demands:
            return Solved(Plan(), Bound(0.0, ""), True)
        return self._of_trees(situation) if self.space == "trees" else self._of_points(situation)

    def _of_points(self, situation: Situation) -> Solved:
        space = space_of(situation, formulation=self.formulation, most_ways=self.most_ways)
        self._check(space.most_columns)
        goal_s = scale_s(situation)
        program = GridProgram(space, goal_s, formulation=self.formulation, integral=True)
        self._check(program.count)
        found = program.solver(self.name, self.limit_s).solve()
        return self._solved(situation, program.plan(found), found, goal_s, "MILP of points")

    def _of_trees(self, situation: Situation) -> Solved:
        candidates = [candidates_of(situation.ways, it) for it in situation.demands]
        self._check(sum(map(len, candidates)))
        goal_s = scale_s(situation)
        program, columns = _tree_program(situation.network, situation.base, candidates, goal_s)
        _limit_slots(situation, program, candidates, columns)
        found = Solver(
            program,
            wanted_by=self.name,
            limit_s=self.limit_s,
            infeasible="no trees keep to the slots that are free",
        ).solve()
        plan = {}
        for it, numbers in zip(candidates, columns, strict=True):
            counts = np.rint(found.values[numbers.start : numbers.stop]).astype(np.int64)
            plan[it.demand.name] = merged(
                tuple(
                    Stripe(int(counts[number]) / it.demand.stripes, it.tree(int(number)))
                    for number in np.flatnonzero(counts)
                )
            )
        return self._solved(situation, Plan(plan), found, goal_s, "MILP of trees")

    def _solved(
        self, situation: Situation, plan: Plan, found: Solution, goal_s: float, what: str
    ) -> Solved:
        bound = at_least(situation, found.bound * goal_s, what)
        return Solved(plan, bound, found.is_optimal)

    def _check(self, columns: int) -> None:
        if columns > self.largest:
            raise RoutingError(
                f"policy 'exact': a program of {columns} columns: it solves up to {self.largest}"
            )


def _tree_program(
    network: Network,
    base: Loads,
    candidates: Sequence[Candidates],
    goal_s: float,
) -> tuple[Program, list[range]]:
    """Its first column is the utilisation; then come, by job, those that say how many stripes each
    candidate has."""
    program, columns, first = Program(), [], 1
    program.columns(1, cost=1.0)
    for it in candidates:
        parts = float(it.demand.stripes)
        program.columns(len(it), upper=parts, integral=True)
        program.rows(
            1, ([0] * len(it), np.arange(first, first + len(it)), 1.0), lower=parts, upper=parts
        )
        columns.append(range(first, first + len(it)))
        first += len(it)
    resource, column, seconds = [], [], []
    for it, numbers in zip(candidates, columns, strict=True):
        row, place = np.nonzero(it.seconds)
        resource.append(it.columns[place])
        column.append(row + numbers.start)
        parts = float(it.demand.stripes)
        seconds.append(it.seconds[row, place] / (goal_s * parts))
    names, rows = np.unique(np.concatenate(resource), return_inverse=True)
    program.rows(
        len(names),
        (
            np.concatenate([rows, np.arange(len(names))]),
            np.concatenate([*column, np.zeros(len(names), dtype=np.int64)]),
            np.concatenate([*seconds, np.full(len(names), -1.0)]),
        ),
        upper=-np.concatenate(base.seconds(network)[:2])[names] / goal_s,
    )
    return program, columns


def _limit_slots(
    situation: Situation,
    program: Program,
    candidates: Sequence[Candidates],
    columns: Sequence[range],
) -> None:
    """Where slots are counted: a job takes an even number, at least its share, at each place."""
    places = np.flatnonzero(situation.network.slots < NO_LIMIT)
    held: dict[int, list[int]] = {}
    for it, numbers in zip(candidates, columns, strict=True):
        if not it.demand.slots:
            continue
        used = [int(place) for place in places if it.nodes[:, place].any()]
        pairs = program.columns(len(used), integral=True, upper=slots_for(it.demand, 1.0) / 2)
        each = it.demand.slots / it.demand.stripes
        for place, pair in zip(used, pairs.tolist(), strict=True):
            with_it = np.flatnonzero(it.nodes[:, place]) + numbers.start
            program.rows(
                1,
                (
                    [0] * (len(with_it) + 1),
                    [*with_it.tolist(), pair],
                    [*[each] * len(with_it), -2.0],
                ),
                upper=0.0,
            )
            held.setdefault(place, []).append(pair)
    for place, every in held.items():
        free = float(situation.network.slots[place])
        program.rows(1, ([0] * len(every), every, 2.0), upper=free)
