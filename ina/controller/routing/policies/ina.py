"""``ina``, the default: striped trees by marginal prices, or what another policy does better."""

from __future__ import annotations

from math import inf

import numpy as np

from ina.controller.errors import RoutingError
from ina.controller.routing.bounds import cut_bound
from ina.controller.routing.loads import loads_of
from ina.controller.routing.plan import Plan
from ina.controller.routing.planner import DEFAULT_MOVES, Planner
from ina.controller.routing.policies.goat import Goat
from ina.controller.routing.policies.grid import Grid
from ina.controller.routing.policies.nearest import Nearest
from ina.controller.routing.policies.panama import Panama
from ina.controller.routing.policies.single import Single
from ina.controller.routing.policy import Policy, Situation

OTHERS: tuple[type[Policy], ...] = (Nearest, Single, Panama, Goat)


_MOST_PLACES, _MOST_WORKERS = 128, 128
"""Of a situation for which ``grid`` is tried, too."""


class Ina:
    """Up to ``demand.stripes`` trees a job, each summed at all levels, chosen together for all jobs
    that come, and the best by the judge's objective of these and of what ``nearest``, ``single``,
    ``panama`` and ``goat`` find; in small networks where places that sum are few, slow or full also
    of ``grid``, without its program.

    Guarantees: never worse than any of those for jobs that come together; running jobs'
    trees stay, but for ``moves`` that are moved where that makes the slowest resource faster. There
    is no bound in theory of how far it is from the best: in fat-trees it meets the bound of cuts
    (docs/routing.md).
    """

    name = "ina"

    def __init__(self, moves: int = DEFAULT_MOVES) -> None:
        self._moves = moves

    def plan(self, situation: Situation) -> Plan:
        """As :class:`Policy` says."""
        planner = Planner(situation.network, others=situation.others, seed=situation.seed)
        new = [it for it in situation.demands if it.name not in situation.current.stripes]
        for demand in situation.demands:
            if demand.name in situation.current.stripes:
                planner.keep(demand, situation.current.stripes[demand.name])
        if len(new) < len(situation.demands):
            planner.arrive(new)
            planner.polish(self._moves)
            return planner.plan()
        try:
            planner.arrive(new)
        except RoutingError as error:
            return _best(situation, None, error)
        return _best(situation, planner.plan())


def _best(situation: Situation, own: Plan | None, why: RoutingError | None = None) -> Plan:
    """``why``: there is no plan of its own. Raises it if there is none at all."""
    best, best_s = own, inf if own is None else _step_s(situation, own)
    bound_s = cut_bound(situation.network, situation.demands).seconds
    others = [other() for other in OTHERS]
    if _is_scarce(situation):
        others.append(Grid(program=False))
    for other in others:
        if situation.others is None and best_s <= bound_s * (1 + 1e-9):
            break
        try:
            plan = other.plan(situation)
        except RoutingError:
            continue
        step_s = _step_s(situation, plan)
        if best is None or step_s < best_s * (1 - 1e-9):
            best, best_s = plan, step_s
    if best is None:
        assert why is not None
        raise why
    return best


def _is_scarce(situation: Situation) -> bool:
    """Whether trees of shortest ways may do badly: places are few that sum, slow or full, so that
    it matters who goes out of its way to one. Where that is found in a second or two."""
    network, demands = situation.network, situation.demands
    workers = sum(map(len, demands))
    if len(network) > _MOST_PLACES or workers > _MOST_WORKERS:
        return False
    slots = sum(it.slots for it in demands)
    may_not = ~network.sums | np.isfinite(network.processing) | (network.slots < slots)
    return bool(may_not.any())


def _step_s(situation: Situation, plan: Plan) -> float:
    loads = situation.base + loads_of(situation.network, situation.demands, plan)
    return loads.step_s(situation.network)
