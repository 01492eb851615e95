"""What no plan of a space can be better than, by linear programs. Pure.

Those of :mod:`ina.controller.routing.bounds` hold for every plan; these hold for what a policy may
choose from, and are closer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ina.controller.routing.bounds import Bound
from ina.controller.routing.candidates import Candidates
from ina.controller.routing.fold import Fold, fold_of
from ina.controller.routing.grid_lp import GridProgram
from ina.controller.routing.loads import Loads, loads_of_job
from ina.controller.routing.lp import DEFAULT_LIMIT_S, Program, Solver
from ina.controller.routing.network import Network
from ina.controller.routing.policy import Situation
from ina.controller.routing.space import Space, space_of

TOLERANCE = 1e-6
"""Of the solver: a bound is lower by it."""
SMALL_TREES = 20_000
"""Loads of trees on places and cables: up to here nothing is folded, which is a little closer."""


def grid_bound(
    situation: Situation,
    space: Space | None = None,
    formulation: str = "path",
    limit_s: float = DEFAULT_LIMIT_S,
) -> Bound:
    """Of plans of policy ``grid``, in stripes or not: the linear program, of a network that is
    folded where it is large. ``space``: by default that of a :class:`Grid` as it is. Raises
    :class:`RoutingError`."""
    space = space_of(situation, formulation=formulation) if space is None else space
    goal_s = scale_s(situation)
    program = GridProgram(space.small, goal_s, formulation=formulation)
    cost = program.solver("grid", limit_s).solve().cost
    return grid_bound_of(situation, space, cost * goal_s)


def grid_bound_of(situation: Situation, space: Space, seconds: float) -> Bound:
    """As the program has ended."""
    return at_least(situation, seconds, "LP of points, folded" if space.fold else "LP of points")


def tree_bound(
    situation: Situation,
    candidates: Sequence[Candidates],
    *,
    small: int = SMALL_TREES,
    limit_s: float = DEFAULT_LIMIT_S,
) -> Bound:
    """Of plans whose trees are among these, each with any share. ``small``: up to how many loads
    the network is as it is; in a folded one most trees are alike. Raises :class:`RoutingError`."""
    goal_s, network, base, what = scale_s(situation), situation.network, situation.base, ""
    if sum(it.seconds.size for it in candidates) > small:
        fold = fold_of(network)
        if fold is not None:
            candidates = [_folded(network, fold, it) for it in candidates]
            network, base, what = fold.network, fold.loads(base), ", folded"
    program, _ = tree_program(network, base, candidates, goal_s)
    cost = Solver(program, wanted_by="exact", limit_s=limit_s).solve().cost
    return at_least(situation, cost * goal_s, f"LP of trees{what}")


def _folded(network: Network, fold: Fold, candidates: Candidates) -> Candidates:
    """With loads of the folded network, and those that load the same as one."""
    rates = np.concatenate([network.rates, network.processing])
    to = np.concatenate([fold.cable_of, len(fold.network.rates) + fold.class_of])
    columns = candidates.columns[to[candidates.columns] >= 0]
    merged, which = np.unique(to[columns], return_inverse=True)
    loads = np.zeros((len(merged), len(candidates)))
    of_columns = np.isin(candidates.columns, columns)
    np.add.at(loads, which, (candidates.seconds[:, of_columns] * rates[columns]).T)
    capacity = np.concatenate([fold.network.rates, fold.network.processing])[merged]
    seconds = (loads / capacity[:, None]).T
    digits = np.round(seconds / max(float(seconds.max(initial=0.0)), 1e-300), 9)
    first = np.unique(digits, axis=0, return_index=True)[1]
    return replace(
        candidates,
        roots=candidates.roots[first],
        nodes=candidates.nodes[first],
        columns=merged,
        seconds=seconds[first],
    )


def tree_program(
    network: Network,
    base: Loads,
    candidates: Sequence[Candidates],
    goal_s: float,
    *,
    integral: bool = False,
) -> tuple[Program, list[range]]:
    """Its first column is the utilisation; then come, by job, those that say how many stripes each
    candidate has (or, not ``integral``, which share)."""
    program, columns, first = Program(), [], 1
    program.columns(1, cost=1.0)
    for it in candidates:
        parts = float(it.demand.stripes) if integral else 1.0
        program.columns(len(it), upper=parts, integral=integral)
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
        parts = float(it.demand.stripes) if integral else 1.0
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


def scale_s(situation: Situation) -> float:
    """About what a step takes, so that programs have numbers about 1."""
    rates = situation.network.rates
    fastest = float(rates[np.isfinite(rates)].max(initial=0.0)) or 1.0
    largest = max(it.step_bytes for it in situation.demands)
    return max(host_loads(situation).step_s(situation.network), largest / fastest)


def host_loads(situation: Situation) -> Loads:
    """Of all jobs on hosts' cables, and of others everywhere."""
    return sum(
        (loads_of_job(situation.network, it, ()) for it in situation.demands),
        situation.base,
    )


def at_least(situation: Situation, seconds: float, what: str) -> Bound:
    """A program's bound, or that of hosts' cables and of others, which it does not count."""
    seconds *= 1 - TOLERANCE
    apart = host_loads(situation).step_s(situation.network)
    return Bound(seconds, what) if seconds >= apart else Bound(apart, "hosts and other jobs")
