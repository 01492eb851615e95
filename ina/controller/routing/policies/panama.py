"""``panama``: several trees a job, lanes spread over them by weight (PANAMA, MLSys 2021)."""

from __future__ import annotations

import numpy as np

from ina.controller.routing.bounds import cut_bound
from ina.controller.routing.candidates import Candidates, candidates_of
from ina.controller.routing.network import Floats
from ina.controller.routing.plan import Plan
from ina.controller.routing.policy import Situation
from ina.controller.routing.stripes import Choices

DEFAULT_TREES = 4
_STEEPNESS = 12.0


class Panama:
    """Jobs in the order in which they came, each on up to ``trees`` trees of shortest ways: those
    that are loaded least so far, and have no cable in common as long as there are such. Each of the
    job's stripes goes to the tree that is loaded least with it, so trees weigh what they can bear.

    Guarantees that no job's trees are changed for another's sake. A job that comes to an empty
    network with as many disjoint trees of equal rates as it has stripes loads none of them with
    more than its stripe; nothing is guaranteed of jobs together, for the first has its choice and
    is not asked again.
    """

    name = "panama"

    def __init__(self, trees: int = DEFAULT_TREES) -> None:
        self._trees = trees

    def plan(self, situation: Situation) -> Plan:
        """As :class:`Policy` says."""
        network = situation.network
        cable_s, place_s, _ = situation.base.seconds(network)
        choices = Choices(network, np.concatenate([cable_s, place_s]))
        goal_s = cut_bound(network, situation.demands).seconds
        for demand in situation.demands:
            them = candidates_of(situation.ways, demand, free=choices.free)
            choices.add(_least_loaded(them, choices.load, min(self._trees, demand.stripes)))
            stripes = [(demand.name, number) for number in range(demand.stripes)]
            choices.place(stripes, goal_s, _STEEPNESS)
        return choices.plan()


def _least_loaded(them: Candidates, load: Floats, most: int) -> Candidates:
    """Up to ``most``: disjoint ones first, then any."""
    cost = (them.seconds > 0) @ load[them.columns]
    order = np.argsort(cost, kind="stable").tolist()
    cables = them.columns < len(them.ways.network.rates)
    uses = them.seconds[:, cables] > 0
    taken = np.zeros(uses.shape[1], dtype=np.bool_)
    chosen: list[int] = []
    for number in order:
        if len(chosen) < most and not (uses[number] & taken).any():
            chosen.append(number)
            taken |= uses[number]
    for number in order:
        if len(chosen) < most and number not in chosen:
            chosen.append(number)
    return them.chosen(np.array(chosen, dtype=np.int64))
