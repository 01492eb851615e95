"""Keeps trees good while jobs come and go and links fail: policy ``ina``'s memory. Pure.

Each event is answered at once by placing what has no tree; the others stay where they are.
Polishing moves trees of running jobs afterwards, no more than it may.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ina.controller.errors import RoutingError
from ina.controller.routing.bounds import Bound, cut_bound
from ina.controller.routing.candidates import (
    Candidates,
    candidates_of,
    trees_alone,
    with_more,
    with_trees,
)
from ina.controller.routing.demand import Demand
from ina.controller.routing.loads import Loads
from ina.controller.routing.network import Floats, Ints, Network, NetworkWays
from ina.controller.routing.plan import Plan, Stripe
from ina.controller.routing.stripes import STEEPNESS, Choices, StripeId

DEFAULT_MOVES = 8
"""Trees of running jobs that one polish may move."""
_WORK = 2e8
"""Multiplications that placing new jobs may take again from another order: half a second."""
_MOST_RESTARTS = 24
_FEW_STRIPES = 64
_NEAR = 1.1
"""So near to the bound, nothing that was not hit is moved when something fails."""
_MOST_AT_ONCE = 100
"""Stripes that are placed anew when something fails: some tens of milliseconds."""


class Planner:
    """Of the jobs of a network. All seconds are of a step's communication."""

    def __init__(self, network: Network, *, others: Loads | None = None, seed: int = 0) -> None:
        self._seed = seed
        self._found: NetworkWays | None = None
        self._choices = Choices(network, _seconds(network, others))
        self._demands: dict[str, Demand] = {}
        self._stale: set[str] = set()
        self._lost: tuple[str, ...] = ()

    @property
    def _ways(self) -> NetworkWays:
        """Of the network as it is now; found when they are needed."""
        if self._found is None or self._found.network is not self.network:
            self._found = NetworkWays(self.network, seed=self._seed)
        return self._found

    @property
    def network(self) -> Network:
        """As it is now."""
        return self._choices.network

    @property
    def step_s(self) -> float:
        """On the cable or at the place that takes the longest, hosts' cables not counted."""
        return self._choices.step_s

    @property
    def demands(self) -> tuple[Demand, ...]:
        """Of the jobs that are here."""
        return tuple(self._demands.values())

    def bound(self) -> Bound:
        """Of any plan for these jobs."""
        return cut_bound(self.network, self.demands)

    def keep(self, demand: Demand, stripes: Sequence[Stripe]) -> None:
        """A job that has trees already; shares are rounded to its stripes."""
        trees = [it.tree for it in stripes]
        self._demands[demand.name] = demand
        self._choices.add(trees_alone(self._ways, demand, trees))
        self._stale.add(demand.name)  # further candidates are found when it is polished
        for stripe, number in enumerate(_dealt(stripes, demand.stripes)):
            self._choices.take(demand.name, stripe, number)

    def arrive(self, demands: Sequence[Demand]) -> None:
        """Jobs that have no trees yet; those that are here keep theirs.

        Raises :class:`RoutingError`: a job cannot have any; then none of them has come.
        """
        try:
            for demand in demands:
                self._choices.add(candidates_of(self._ways, demand, free=self._choices.free))
                self._demands[demand.name] = demand
                self._place_stripes(demand, self.step_s, STEEPNESS[0])
            self._improve([it.name for it in demands])
        except RoutingError:
            for demand in demands:
                if demand.name in self._choices.chosen:
                    self._choices.remove(demand.name)
                self._demands.pop(demand.name, None)
            raise

    def _place_stripes(self, demand: Demand, goal_s: float, steepness: float) -> None:
        """All of a job's; where places fill up, also over trees that do without them."""
        for number in range(demand.stripes):
            stripe = (demand.name, number)
            try:
                self._choices.place([stripe], goal_s, steepness)
            except RoutingError:
                more = candidates_of(self._ways, demand, free=self._choices.free)
                had = self._choices.candidates[demand.name]
                chosen = self._choices.chosen[demand.name]
                self._choices.exchange(with_more(had, more), chosen)
                self._choices.place([stripe], goal_s, steepness)

    def _improve(self, names: Sequence[str]) -> None:
        stripes = [it for it in self._choices.all_stripes() if it[0] in set(names)]
        goal_s = self.bound().seconds
        self._choices.improve(goal_s, stripes)
        self._choices.polish(goal_s, _moves(stripes), movable=names)
        self._restart(names, stripes, goal_s)

    def _restart(self, names: Sequence[str], stripes: Sequence[StripeId], goal_s: float) -> None:
        """From other orders, while that may bring something and costs little."""
        work = len(STEEPNESS) * sum(
            2 * self._choices.candidates[name].seconds.size for name, _ in stripes
        )
        rng = np.random.default_rng(self._seed)
        for _ in range(min(_MOST_RESTARTS, int(_WORK / max(work, 1)))):
            if self.step_s <= goal_s * (1 + 1e-9):
                return
            best = self._choices.state()
            self._choices.improve(goal_s, stripes, rng=rng)
            self._choices.polish(goal_s, _moves(stripes), movable=names)
            if self._choices.step_s > best[0]:
                self._choices.restore(best)

    def depart(self, name: str) -> None:
        """A job that goes."""
        if name in self._choices.chosen:
            self._choices.remove(name)
        del self._demands[name]
        self._stale.discard(name)

    def change(self, network: Network, others: Loads | None = None) -> list[str]:
        """Cables or places failed, or came back, or have other rates or slots.

        Returns the jobs some of whose trees are gone and which have others now; where a job can
        have none any more, it is gone from here, and :meth:`lost` has it. Up to
        :data:`DEFAULT_MOVES` stripes are moved further, of others, too, where it is bad without.
        """
        gone = self._choices.rebase(network, _seconds(network, others))
        self._stale = set(self._demands)
        hit: dict[str, list[StripeId]] = {}
        for name, stripe in gone:
            hit.setdefault(name, []).append((name, stripe))
        goal_s = self.bound().seconds
        lost = [name for name, stripes in hit.items() if not self._place(name, stripes, goal_s)]
        for name in lost:
            self.depart(name)
        self._lost = tuple(lost)
        moved = [name for name in hit if name in self._demands]
        if moved and self.step_s > goal_s * (1 + 1e-9):
            # Who has to move anyhow may as well move all of its stripes.
            theirs = [(name, at) for name in moved for at in range(self._demands[name].stripes)]
            self._choices.improve(goal_s, theirs[:_MOST_AT_ONCE], passes=STEEPNESS[2:4])
            self._choices.polish(_NEAR * goal_s, DEFAULT_MOVES)
        return moved

    def _place(self, name: str, stripes: Sequence[StripeId], goal_s: float) -> bool:
        """Those of a job whose trees are gone; False: it cannot have others."""
        try:
            if not self._choices.can_be_placed(name):
                self._renew(name)
            self._choices.place(stripes, goal_s, STEEPNESS[2])
        except RoutingError:
            return self._place_all(name, goal_s)
        return True

    def _place_all(self, name: str, goal_s: float) -> bool:
        """All of a job's stripes over trees that are found anew."""
        try:
            demand = self._demands[name]
            self._choices.remove(name)
            self._choices.add(candidates_of(self._ways, demand, free=self._choices.free))
            self._place_stripes(demand, goal_s, STEEPNESS[2])
        except RoutingError:
            return False
        return True

    @property
    def lost(self) -> tuple[str, ...]:
        """Of the last :meth:`change`: jobs that cannot have trees any more."""
        return self._lost

    def polish(self, moves: int = DEFAULT_MOVES) -> int:
        """Moves up to so many stripes of running jobs; returns how many."""
        goal_s = self.bound().seconds
        if self.step_s <= goal_s * (1 + 1e-9):
            return 0
        for name in list(self._stale):
            self._renew(name)
        return self._choices.polish(goal_s, moves)

    def _renew(self, name: str) -> None:
        """Candidates of the network as it is, beside the trees that the job has."""
        had, numbers = self._choices.candidates[name], self._choices.chosen[name]
        used = np.unique(numbers[numbers >= 0])
        fresh = _candidates(self._ways, self._demands[name], self._choices, had, used)
        kept = {int(number): len(fresh) + at for at, number in enumerate(used)}
        fresh = with_trees(fresh, [had.tree(int(number)) for number in used])
        moved = np.array([kept.get(int(it), -1) for it in numbers], dtype=np.int64)
        self._choices.exchange(fresh, moved)
        self._stale.discard(name)

    def plan(self) -> Plan:
        """With like trees of a job as one."""
        return self._choices.plan()

    def stripes(self, name: str) -> tuple[Stripe, ...]:
        """Of one job."""
        return self._choices.stripes(name)


def _moves(stripes: Sequence[StripeId]) -> int:
    """After placing so many new ones: as many as there are of few, some of many."""
    return len(stripes) if len(stripes) <= _FEW_STRIPES else DEFAULT_MOVES


def _candidates(
    ways: NetworkWays, demand: Demand, choices: Choices, had: Candidates, used: Ints
) -> Candidates:
    """Where the job has trees, its own slots count as free."""
    free = choices.free.copy()
    if len(used):
        free[had.nodes[used].any(axis=0)] += demand.slots
    return candidates_of(ways, demand, free=free)


def _dealt(stripes: Sequence[Stripe], count: int) -> list[int]:
    """By stripe of ``count``, which of the trees it has: as near to their shares as can be."""
    ends = np.cumsum([it.share for it in stripes])
    middles = (np.arange(count) + 0.5) / count * ends[-1]
    return [int(it) for it in np.searchsorted(ends, middles)]


def _seconds(network: Network, loads: Loads | None) -> Floats:
    if loads is None:
        return np.zeros(len(network.rates) + len(network))
    cable_s, place_s, _ = loads.seconds(network)
    return np.concatenate([cable_s, place_s])
