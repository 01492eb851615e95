"""``ina``, the default: striped trees by marginal prices, or what another policy does better."""

from __future__ import annotations

from math import inf

from ina.controller.routing.bounds import cut_bound
from ina.controller.routing.errors import RoutingError
from ina.controller.routing.loads import loads_of
from ina.controller.routing.plan import Plan
from ina.controller.routing.planner import DEFAULT_MOVES, Planner
from ina.controller.routing.policies.nearest import Nearest
from ina.controller.routing.policies.panama import Panama
from ina.controller.routing.policies.single import Single
from ina.controller.routing.policy import Policy, Situation

OTHERS: tuple[type[Policy], ...] = (Nearest, Single, Panama)


class Ina:
    """Up to ``demand.stripes`` trees a job, each summed at all levels, chosen together for all jobs
    that come, and the best by the judge's objective of these and of what ``nearest``, ``single``
    and ``panama`` find.

    Guarantees: never worse than any of those three for jobs that come together; running jobs'
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
    for other in OTHERS:
        if situation.others is None and best_s <= bound_s * (1 + 1e-9):
            break
        try:
            plan = other().plan(situation)
        except RoutingError:
            continue
        step_s = _step_s(situation, plan)
        if best is None or step_s < best_s * (1 - 1e-9):
            best, best_s = plan, step_s
    if best is None:
        assert why is not None
        raise why
    return best


def _step_s(situation: Situation, plan: Plan) -> float:
    loads = situation.base + loads_of(situation.network, situation.demands, plan)
    return loads.step_s(situation.network)
