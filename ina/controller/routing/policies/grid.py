"""``grid``: each worker's gradients are summed at one place, then once more at the root.

J. Fang, G. Zhao, H. Xu, C. Wu, Z. Yu: GRID: Gradient Routing With In-Network Aggregation for
Distributed Training. IEEE/ACM Transactions on Networking 31(5), 2023.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ina.controller.routing.bounds import Bound, cut_bound
from ina.controller.routing.demand import Demand
from ina.controller.routing.grid_lp import GridProgram, Shares
from ina.controller.routing.lp import InfeasibleError, LpError
from ina.controller.routing.lp_bounds import TOLERANCE, grid_bound, grid_bound_of, scale_s
from ina.controller.routing.paths import MOST_WAYS
from ina.controller.routing.placing import Placing
from ina.controller.routing.plan import Plan
from ina.controller.routing.policy import Situation
from ina.controller.routing.rounding import Dealt, Draw, deal
from ina.controller.routing.space import SMALL, Space, space_of

DRAWS = 12
LIMIT_S = 20.0
ENOUGH = 1 + 3 * TOLERANCE
"""Times the bound: that is as good as the bound itself."""


@dataclass(frozen=True)
class Grid:
    """One level of aggregation below the root, which is the job's server (or the top of rank 0's
    rack). The linear program says which share of each rack's workers is summed where; shares become
    stripes (with one stripe: draws, as in the paper); then prices choose among alike places, and
    move what is better elsewhere.

    Guarantees that no worker's gradients are summed in more than two places, and that no plan is
    below :meth:`bound`; not how near one comes to it. With 16 stripes that was 1.1 in fat-trees,
    with one stripe a job it is often 2: the program deals shares. One level cannot be good for
    large jobs, for the root takes a stream of each place that sums; jobs of some hundred workers
    are refused where switches have too few children (``Network.most_children``) to sum all of them
    in one level. Trees of several levels are right for those.
    """

    name = "grid"

    formulation: str = "path"
    """``path``: the ways of packets are chosen, and every cable counts. ``rate``: as the network
    forwards; what places sum and what comes into roots counts."""
    draws: int = DRAWS
    """How many roundings are tried, of one stripe a job; of several fewer, as each stripe is a draw
    by itself."""
    most_ways: int = MOST_WAYS
    """Between two places."""
    small: int = SMALL
    """Up to which size nothing is folded; see :data:`ina.controller.routing.space.SMALL`."""
    program: bool = True
    """Whether there is one, which needs ``highspy``; else places are chosen by prices alone."""
    limit_s: float = LIMIT_S
    """Of the program; where it is not solved by then, places are chosen without."""

    def plan(self, situation: Situation) -> Plan:
        """As :class:`Policy` says."""
        if not situation.demands:
            return Plan()
        space, rng = self._space(situation), np.random.default_rng(situation.seed)
        if not self.program:
            return self._by_prices(situation, space, rng)
        try:
            bound, shares = self._solved(situation, space)
        except InfeasibleError:
            raise
        except LpError:  # too large
            return self._by_prices(situation, space, rng)
        placing, best = self._placing(situation, space, bound, rng), np.inf
        for draw in self._draws(space):
            placing.clear()
            placing.start(_dealt(space, shares, draw, rng))
            placing.improve(enough=ENOUGH)
            if placing.utilisation < best:
                best, state = placing.utilisation, placing.state()
            if best <= ENOUGH:
                break
        placing.restore(state)
        return placing.plan()

    def _by_prices(self, situation: Situation, space: Space, rng: np.random.Generator) -> Plan:
        """Without the program."""
        bound = cut_bound(space.network, space.demands)
        placing = self._placing(situation, space, bound, rng)
        placing.start([_anywhere(space, it) for it in space.demands])
        placing.improve()
        return placing.plan()

    def _placing(
        self, situation: Situation, space: Space, bound: Bound, rng: np.random.Generator
    ) -> Placing:
        goal_s = bound.seconds or scale_s(situation)
        return Placing(space, goal_s, formulation=self.formulation, rng=rng)

    def bound(self, situation: Situation) -> Bound:
        """No plan of this policy is better."""
        return grid_bound(situation, self._space(situation), self.formulation, self.limit_s)

    def _space(self, situation: Situation) -> Space:
        return space_of(
            situation, formulation=self.formulation, most_ways=self.most_ways, small=self.small
        )

    def _solved(self, situation: Situation, space: Space) -> tuple[Bound, list[Shares]]:
        goal_s = scale_s(situation)
        program = GridProgram(space.small, goal_s, formulation=self.formulation)
        solver = program.solver(self.name, self.limit_s)
        least = solver.solve()
        fewest = program.fewest_points(solver, least)
        return grid_bound_of(situation, space, least.cost * goal_s), program.shares(fewest)

    def _draws(self, space: Space) -> Iterator[Draw]:
        yield "middle"
        kinds: tuple[Draw, ...] = ("apart", "alone", "together")
        for number in range(self.draws // max(it.stripes for it in space.demands) - 1):
            yield kinds[number % len(kinds)]


def _dealt(space: Space, shares: list[Shares], draw: Draw, rng: np.random.Generator) -> list[Dealt]:
    found, small = [], space.small
    class_of = np.arange(len(space.network)) if space.fold is None else space.fold.class_of
    for demand, of_job in zip(small.demands, shares, strict=True):
        workers = demand.racks(small.network)[1]
        away = small.paths.ways.hops[of_job.points, of_job.points[-1]].astype(np.int64)
        column_of = np.full(len(small.network), -1, dtype=np.int64)
        column_of[of_job.points] = np.arange(len(of_job.points))
        dealt = deal(of_job, workers, away, demand.stripes, draw, rng)
        found.append(Dealt(dealt, column_of[class_of]))
    return found


def _anywhere(space: Space, demand: Demand) -> Dealt:
    workers = np.tile(demand.racks(space.network)[1][:, None], (demand.stripes, 1, 1))
    return Dealt(workers, np.zeros(len(space.network), dtype=np.int64))
