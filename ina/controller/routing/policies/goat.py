"""``goat``: which switches sum which sub-models (GOAT, IWQoS 2023), by what traffic that saves."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

import numpy as np

from ina.controller.errors import RoutingError
from ina.controller.routing.demand import Demand
from ina.controller.routing.judge import problems
from ina.controller.routing.loads import loads_of_job, slots_for
from ina.controller.routing.network import Ints, NetworkWays
from ina.controller.routing.plan import Plan, PlannedTree, Stripe, Way, merged
from ina.controller.routing.policies.single import root_of
from ina.controller.routing.policy import Situation
from ina.fabric.ways import FAR

_LEAST = 1e-9
"""Of bytes times cables, in shares of a step: less is rounding."""


class Goat:
    """Every worker sends each sub-model to one switch that sums it, or to the job's server, and
    each such switch one sum to the server. Where to sum is chosen by what it saves of bytes times
    cables, as much as can be for the slots that it takes: the best pair of sub-model and switch
    first, until no switch has room or nothing is saved any more. Several may sum a sub-model.

    Guarantees that no switch has more than its slots, and no worker's way to its switch and on is
    longer than its way to the server. It saves at least 0.95 of what the LP relaxation does in the
    settings of docs/routing.md; nothing is guaranteed of loads.
    """

    name = "goat"

    def plan(self, situation: Situation) -> Plan:
        """As :class:`Policy` says."""
        chosen = replicas(situation.ways, situation.demands)
        plan = Plan(
            {it.name: planned(situation.ways, it, *chosen[it.name]) for it in situation.demands}
        )
        for problem in problems(situation.network, situation.demands, plan):
            raise RoutingError(problem)
        return plan


def sizes_of(demand: Demand) -> tuple[float, ...]:
    """Shares of its sub-models: 1 together."""
    sizes = demand.sub_models or (1.0,) * demand.stripes
    return tuple(size / sum(sizes) for size in sizes)


def replicas(
    ways: NetworkWays, demands: tuple[Demand, ...]
) -> Mapping[str, tuple[int, list[set[int]]]]:
    """By job, where its results are made; and by sub-model, the switches that sum it before.

    Raises :class:`RoutingError`: a job's results can be made nowhere.
    """
    free = ways.network.slots.copy()
    states = []
    for demand in demands:
        states.append(_Job(ways, demand, root_of(ways, demand, free)))
        free[states[-1].root] -= demand.slots
    heap: list[tuple[float, int, int, int]] = []

    def push(number: int, model: int) -> None:
        found = states[number].best(model, free)
        if found is not None:
            heapq.heappush(heap, (-found[0], number, model, found[1]))

    for number, state in enumerate(states):
        for model in range(len(state.sizes)):
            push(number, model)
    while heap:
        worth, number, model, place = heapq.heappop(heap)
        state = states[number]
        now = state.best(model, free)
        if now is None:
            continue
        if now[1] != place or now[0] < -worth * (1 - 1e-9):  # others took the room meanwhile
            heapq.heappush(heap, (-now[0], number, model, now[1]))
            continue
        state.add(model, place)
        free[place] -= state.cost[model]
        push(number, model)
    return {state.demand.name: (state.root, state.without_idle()) for state in states}


class _Job:
    """What is chosen for one job, and what more would save."""

    def __init__(self, ways: NetworkWays, demand: Demand, root: int) -> None:
        network = ways.network
        self.demand = demand
        self.root = root
        self.sizes = sizes_of(demand)
        self.cost = [slots_for(demand, size) for size in self.sizes]
        self.chosen: list[set[int]] = [set() for _ in self.sizes]
        racks, self._counts = demand.racks(network)
        hops = ways.hops.astype(np.float64)
        self._to = hops[racks]  # (racks, places)
        self._on = hops[:, self.root]  # (places,): from a place to the server
        self._may = network.sums & (self._on > 0) & (self._on < FAR)
        self._now = [self._to[:, self.root].copy() for _ in self.sizes]

    def best(self, model: int, free: Ints) -> tuple[float, int] | None:
        """What the best further switch saves for each slot, and which; None: none saves any."""
        saved = self._counts @ np.maximum(self._now[model][:, None] - self._to, 0.0) - self._on
        saved[~self._may | (free < self.cost[model])] = 0.0
        place = int(saved.argmax())
        if saved[place] <= _LEAST:
            return None
        size = self.sizes[model] * self.demand.step_bytes
        return float(saved[place]) * size / max(self.cost[model], _LEAST), place

    def add(self, model: int, place: int) -> None:
        """A switch for a sub-model."""
        self.chosen[model].add(place)
        self._now[model] = np.minimum(self._now[model], self._to[:, place])

    def without_idle(self) -> list[set[int]]:
        """What is chosen, without switches that later ones have left with nothing to save."""
        return [self._busy(sorted(switches)) for switches in self.chosen]

    def _busy(self, switches: list[int]) -> set[int]:
        left = [self.root, *switches]
        at = 1
        while at < len(left):
            others = [it for it in left if it != left[at]]
            apart = self._to[:, others].min(axis=1)
            saved = self._counts @ np.maximum(apart - self._to[:, left[at]], 0.0)
            if saved - self._on[left[at]] <= _LEAST:
                left, at = others, 1
            else:
                at += 1
        return set(left[1:])


def planned(
    ways: NetworkWays, demand: Demand, root: int, chosen: list[set[int]]
) -> tuple[Stripe, ...]:
    """The trees: sub-models that are summed alike are one stripe."""
    sizes = sizes_of(demand)
    racks, _ = demand.racks(ways.network)
    places = demand.places(ways.network)
    made: dict[frozenset[int], PlannedTree] = {}
    for switches in chosen:
        key = frozenset(switches)
        if key not in made:
            made[key] = _tree(ways, root, racks, places, key)
    return merged(
        tuple(
            Stripe(size, made[frozenset(switches)])
            for size, switches in zip(sizes, chosen, strict=True)
        )
    )


def _tree(
    ways: NetworkWays, root: int, racks: Ints, places: Ints, switches: frozenset[int]
) -> PlannedTree:
    first: dict[int, int] = {}
    for rack in racks.tolist():
        to = min([root, *sorted(switches)], key=lambda it: int(ways.hops[rack, it]))
        first[rack] = to
    used = set(first.values()) - {root}
    up: dict[int, Way] = {it: ways.way(it, root) for it in sorted(used)}
    by_rank = np.array([first[int(place)] for place in places], dtype=np.int64)
    return PlannedTree(
        root, up, by_rank, {(rack, to): ways.way(rack, to) for rack, to in first.items()}
    )


def saving(ways: NetworkWays, demand: Demand, stripes: tuple[Stripe, ...]) -> float:
    """Bytes a step times cables, each way, that a plan of one level takes less than if every worker
    sent all to the server."""
    racks, counts = demand.racks(ways.network)
    alone = float(counts @ ways.hops[racks, stripes[0].tree.root])
    loads = loads_of_job(ways.network, demand, stripes)
    return demand.step_bytes * alone - float(loads.cables.sum())
