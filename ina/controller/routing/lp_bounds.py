"""What no plan of a space can be better than, by linear programs. Pure.

Those of :mod:`ina.controller.routing.bounds` hold for every plan; these hold for what a policy may
choose from, and are closer.
"""

from __future__ import annotations

import numpy as np

from ina.controller.routing.bounds import Bound
from ina.controller.routing.grid_lp import GridProgram
from ina.controller.routing.loads import Loads, loads_of_job
from ina.controller.routing.lp import DEFAULT_LIMIT_S
from ina.controller.routing.policy import Situation
from ina.controller.routing.space import Space, space_of

TOLERANCE = 1e-6
"""Of the solver: a bound is lower by it."""


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
