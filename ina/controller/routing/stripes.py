"""Which of its candidate trees each stripe of each job takes: by marginal prices. Pure.

A resource's price rises exponentially with its load, and a stripe takes the tree that is cheapest
with the stripe's own load on it; a few passes over all stripes with ever steeper prices, and the
best state is kept. The prices are those of online routing (J. Aspnes, Y. Azar, A. Fiat, S. Plotkin,
O. Waarts: On-line routing of virtual circuits, J. ACM 44, 1997, section 3); taking a stripe out and
putting it back is a step of local search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ina.controller.routing.candidates import Candidates
from ina.controller.routing.errors import RoutingError
from ina.controller.routing.loads import slots_for
from ina.controller.routing.network import Floats, Ints, Network
from ina.controller.routing.plan import Plan, Stripe, merged

STEEPNESS = (6.0, 12.0, 24.0, 48.0, 96.0)
"""By pass: a resource at the goal costs e^steepness times what an idle one does."""


@dataclass(eq=False)
class Choices:
    """The state: by job, its candidates and which of them each stripe has (-1: none yet)."""

    network: Network
    candidates: dict[str, Candidates] = field(default_factory=dict)
    chosen: dict[str, Ints] = field(default_factory=dict)
    base: Floats = field(default_factory=lambda: np.zeros(0))
    """(resources,): seconds a step that are not of these jobs."""

    def __post_init__(self) -> None:
        resources = len(self.network.rates) + len(self.network)
        if not self.base.size:
            self.base = np.zeros(resources)
        self._load = self.base.copy()
        self._free = self.network.slots.copy()
        self._steeper: dict[str, Floats] = {}

    @property
    def load(self) -> Floats:
        """(resources,): seconds a step."""
        load: Floats = self._load
        return load

    @property
    def step_s(self) -> float:
        """Of the resource that takes the longest."""
        return float(self._load.max(initial=0.0))

    def add(self, candidates: Candidates, stripes: int | None = None) -> None:
        """A job without trees."""
        demand = candidates.demand
        self.candidates[demand.name] = candidates
        count = demand.stripes if stripes is None else stripes
        self.chosen[demand.name] = np.full(count, -1, dtype=np.int64)

    def remove(self, name: str) -> None:
        """A job, with what its stripes load."""
        for stripe in range(len(self.chosen[name])):
            self._drop(name, stripe)
        del self.candidates[name], self.chosen[name]
        self._steeper.pop(name, None)

    def take(self, name: str, stripe: int, number: int) -> None:
        """Gives a stripe that has none a tree, by the candidate's number."""
        it, share = self.candidates[name], 1 / len(self.chosen[name])
        self._load[it.columns] += share * it.seconds[number]
        self._free[it.nodes[number]] -= slots_for(it.demand, share)
        self.chosen[name][stripe] = number

    def _drop(self, name: str, stripe: int) -> None:
        number = int(self.chosen[name][stripe])
        if number < 0:
            return
        it, share = self.candidates[name], 1 / len(self.chosen[name])
        self._load[it.columns] -= share * it.seconds[number]
        self._free[it.nodes[number]] += slots_for(it.demand, share)
        self.chosen[name][stripe] = -1

    def place(self, stripes: Iterable[tuple[str, int]], goal_s: float, steepness: float) -> None:
        """Takes each stripe out and gives it the tree that is cheapest then.

        ``goal_s``: what no plan is below. Raises :class:`RoutingError`: no tree of a stripe has
        room; that one has none then.
        """
        self._steeper.clear()
        scale = steepness / max(goal_s, self.step_s, 1e-30)
        for name, stripe in stripes:
            self._drop(name, stripe)
            self.take(name, stripe, self._cheapest(name, scale))

    def _cheapest(self, name: str, scale: float) -> int:
        it, share = self.candidates[name], 1 / len(self.chosen[name])
        rise = self._steeper.get(name)
        if rise is None:
            rise = self._steeper[name] = np.expm1(np.minimum(scale * share * it.seconds, 200.0))
        at = scale * self._load[it.columns]
        cost = rise @ np.exp(np.minimum(at - at.max(), 0.0))
        short = self._free < slots_for(it.demand, share)
        if short.any():
            cost[it.nodes[:, short].any(axis=1)] = np.inf
        best = int(cost.argmin())
        if not np.isfinite(cost[best]):
            raise RoutingError(f"job {it.demand.name!r}: no tree has room on all of its switches")
        return best

    def all_stripes(self) -> list[tuple[str, int]]:
        """Of all jobs, those of one job apart from one another."""
        return sorted(
            ((name, stripe) for name, had in self.chosen.items() for stripe in range(len(had))),
            key=lambda it: it[1],
        )

    def improve(
        self,
        goal_s: float,
        *,
        passes: Sequence[float] = STEEPNESS,
        rng: np.random.Generator | None = None,
        is_over: float | None = None,
    ) -> None:
        """Passes over all stripes; ends with the best state of all that it saw.

        ``is_over``: as good as this is good enough; by default ``goal_s``.
        """
        enough = (goal_s if is_over is None else is_over) * (1 + 1e-9)
        stripes = self.all_stripes()
        best = self.state() if self._is_whole() else None
        for steepness in passes:
            if best is not None and best[0] <= enough:
                break
            if rng is not None:
                rng.shuffle(stripes)
            self.place(stripes, goal_s, steepness)
            if best is None or self.step_s < best[0]:
                best = self.state()
        if best is not None and best[0] < self.step_s:
            self.restore(best)

    def _is_whole(self) -> bool:
        return all((had >= 0).all() for had in self.chosen.values())

    def state(self) -> tuple[float, dict[str, Ints]]:
        """How good it is, and what is chosen."""
        return self.step_s, {name: had.copy() for name, had in self.chosen.items()}

    def restore(self, state: tuple[float, Mapping[str, Ints]]) -> None:
        """As :meth:`state` gave it; of the same jobs."""
        for name, numbers in state[1].items():
            for stripe, number in enumerate(numbers):
                if self.chosen[name][stripe] != number:
                    self._drop(name, stripe)
                    self.take(name, stripe, int(number))

    def plan(self) -> Plan:
        """With like trees of a job as one."""
        return Plan({name: self.stripes(name) for name in self.chosen})

    def stripes(self, name: str) -> tuple[Stripe, ...]:
        """Of one job."""
        it, had = self.candidates[name], self.chosen[name]
        numbers, counts = np.unique(had, return_counts=True)
        return merged(
            tuple(
                Stripe(int(count) / len(had), it.tree(int(number)))
                for number, count in zip(numbers, counts, strict=True)
            )
        )
