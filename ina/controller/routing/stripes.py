"""Which of its candidate trees each stripe of each job takes: by marginal prices. Pure.

A resource's price rises exponentially with its load, and a stripe takes the tree that is cheapest
with the stripe's own load on it; a few passes over all stripes with ever steeper prices, and the
best state is kept. The prices are those of online routing (J. Aspnes, Y. Azar, A. Fiat, S. Plotkin,
O. Waarts: On-line routing of virtual circuits, J. ACM 44, 1997, section 3); taking a stripe out and
putting it back is a step of local search.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ina.controller.errors import RoutingError
from ina.controller.routing.candidates import Candidates
from ina.controller.routing.loads import slots_for
from ina.controller.routing.network import Bools, Floats, Ints, Network
from ina.controller.routing.plan import Plan, Stripe, merged

STEEPNESS = (6.0, 12.0, 24.0, 48.0, 96.0)
"""By pass: a resource at the goal costs e^steepness times what an idle one does."""
STEEPEST = 200.0
_MOST_EXPONENT = 200.0
_CHAIN, _TRIED = 3, 6
"""Moves that only together make it better; where such a chain may begin."""

StripeId = tuple[str, int]
"""A job's name, and the number of its stripe."""


@dataclass(eq=False)
class Choices:
    """The state: by job, its candidates and which of them each stripe has (-1: none)."""

    network: Network
    base: Floats = field(default_factory=lambda: np.zeros(0))
    """(resources,): seconds a step that are not of these jobs; empty: none are."""
    candidates: dict[str, Candidates] = field(default_factory=dict)
    chosen: dict[str, Ints] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.base.size:
            self.base = np.zeros(len(self.network.rates) + len(self.network))
        self.load: Floats = self.base.copy()
        """(resources,): seconds a step."""
        self._free = self.network.slots.copy()
        self._usable: dict[str, Bools] = {}
        self._rises: dict[str, tuple[float, Floats]] = {}

    @property
    def step_s(self) -> float:
        """Of the resource that takes the longest."""
        return float(self.load.max(initial=0.0))

    @property
    def free(self) -> Ints:
        """(places,): slots that none of these jobs has."""
        free: Ints = self._free
        return free

    def add(self, candidates: Candidates) -> None:
        """A job without trees."""
        name = candidates.demand.name
        self.candidates[name] = candidates
        self.chosen[name] = np.full(candidates.demand.stripes, -1, dtype=np.int64)
        self._usable[name] = np.ones(len(candidates), dtype=np.bool_)

    def remove(self, name: str) -> None:
        """A job, with what its stripes load."""
        for stripe in range(len(self.chosen[name])):
            self.drop(name, stripe)
        del self.candidates[name], self.chosen[name], self._usable[name]
        self._rises.pop(name, None)

    def exchange(self, candidates: Candidates, numbers: Ints) -> None:
        """Other candidates for a job; ``numbers``: by stripe, which of these it has; -1: none."""
        name, chosen = candidates.demand.name, numbers.tolist()
        self.remove(name)
        self.add(candidates)
        for stripe, number in enumerate(chosen):
            if number >= 0:
                self.take(name, stripe, number)

    def take(self, name: str, stripe: int, number: int) -> None:
        """Gives a stripe that has none a tree, by the candidate's number."""
        it, share = self.candidates[name], 1 / len(self.chosen[name])
        self.load[it.columns] += share * it.seconds[number]
        self._free[it.nodes[number]] -= slots_for(it.demand, share)
        self.chosen[name][stripe] = number

    def drop(self, name: str, stripe: int) -> None:
        """Takes its tree from a stripe, if it has one."""
        number = int(self.chosen[name][stripe])
        if number < 0:
            return
        it, share = self.candidates[name], 1 / len(self.chosen[name])
        self.load[it.columns] -= share * it.seconds[number]
        self._free[it.nodes[number]] += slots_for(it.demand, share)
        self.chosen[name][stripe] = -1

    def rebase(self, network: Network, base: Floats | None = None) -> list[StripeId]:
        """The network has changed, or what others load: returns the stripes whose trees are gone.

        Places and cables have the numbers they had.
        """
        before, self.network = self.network, network
        self.base = self.base if base is None else base
        scale = _scale(before, network)
        down = ~np.concatenate([network.is_up, np.ones(len(network), dtype=np.bool_)])
        gone = []
        for name, it in self.candidates.items():
            takes_down = np.any(it.seconds[:, down[it.columns]] > 0, axis=1)
            breaks: Bools = np.logical_or(takes_down, np.any(it.nodes[:, ~network.sums], axis=1))
            it.seconds[:] *= scale[it.columns]
            self._usable[name], had = ~breaks, self.chosen[name]
            gone += [(name, int(at)) for at in np.flatnonzero(breaks[had] & (had >= 0))]
        self._rises.clear()
        for name, stripe in gone:
            self.chosen[name][stripe] = -1
        self._recount()
        return gone

    def _recount(self) -> None:
        self.load, self._free = self.base.copy(), self.network.slots.copy()
        for name, had in self.chosen.items():
            for stripe, number in enumerate(had.tolist()):
                if number >= 0:
                    self.take(name, stripe, number)

    def can_be_placed(self, name: str) -> bool:
        """Whether any of its candidates is left."""
        return bool(self._usable[name].any())

    def place(self, stripes: Iterable[StripeId], goal_s: float, steepness: float) -> None:
        """Takes each stripe out and gives it the tree that is cheapest then.

        ``goal_s``: what no plan is below. Raises :class:`RoutingError`: no tree of a stripe has
        room; that one has none then.
        """
        scale = steepness / max(goal_s, self.step_s, 1e-30)
        for name, stripe in stripes:
            self.drop(name, stripe)
            self.take(name, stripe, self._cheapest(name, scale)[0])

    def _cheapest(
        self, name: str, scale: float, *, besides: int | None = None
    ) -> tuple[int, float]:
        """The number, and the logarithm of what a stripe adds to the sum of all prices there.

        ``besides``: none that needs the resource of this column; -1: there is no other. Raises
        :class:`RoutingError` where there is none at all.
        """
        it, share = self.candidates[name], 1 / len(self.chosen[name])
        at_scale, rise = self._rises.get(name, (0.0, None))
        if rise is None or at_scale != scale:
            rise = np.expm1(np.minimum(scale * share * it.seconds, _MOST_EXPONENT))
            self._rises[name] = scale, rise
        at = scale * self.load[it.columns]
        top = float(at.max(initial=0.0))
        cost = rise @ np.exp(at - top)
        cost[~self._usable[name]] = np.inf
        short = self._free < slots_for(it.demand, share)
        if short.any():
            cost[it.nodes[:, short].any(axis=1)] = np.inf
        if besides is not None:
            cost[it.seconds[:, besides] > 0] = np.inf
        if not np.isfinite(cost).any():
            if besides is not None:
                return -1, np.inf
            raise RoutingError(f"job {name!r}: no tree has room on all of its switches")
        best = int(cost.argmin())
        with np.errstate(divide="ignore"):
            return best, top + float(np.log(cost[best]))

    def all_stripes(self) -> list[StripeId]:
        """Of all jobs, those of one job apart from one another."""
        return sorted(
            ((name, stripe) for name, had in self.chosen.items() for stripe in range(len(had))),
            key=lambda it: it[1],
        )

    def improve(
        self,
        goal_s: float,
        stripes: Sequence[StripeId] | None = None,
        *,
        passes: Sequence[float] = STEEPNESS,
        rng: np.random.Generator | None = None,
    ) -> None:
        """Passes over stripes, by default all; ends with the best state of all that it saw, or as
        soon as it is as good as ``goal_s``. ``rng``: the order is drawn.
        """
        order = list(self.all_stripes() if stripes is None else stripes)
        best = self.state() if self._is_whole() else None
        for steepness in passes:
            if best is not None and best[0] <= goal_s * (1 + 1e-9):
                break
            if rng is not None:
                order = [order[at] for at in rng.permutation(len(order))]
            self.place(order, goal_s, steepness)
            if best is None or self.step_s < best[0]:
                best = self.state()
        if best is not None and best[0] < self.step_s:
            self.restore(best)

    def polish(self, goal_s: float, moves: int, *, movable: Sequence[str] | None = None) -> int:
        """Moves stripes off whatever takes the longest, while that gets better: one at a time, or
        where none helps one and then another that it is in the way of.

        Returns how many, at most ``moves``. ``movable``: names of jobs; by default all.
        """
        if math.isinf(self.step_s):
            return 0  # what others have on what is down, which no move here makes less
        names = list(self.chosen if movable is None else movable)
        scale = STEEPEST / max(self.step_s, 1e-30)
        made = 0
        while made < moves and self.step_s > goal_s * (1 + 1e-9):
            steps = self._better(names, scale, min(_CHAIN, moves - made))
            if not steps:
                break
            made += steps
        return made

    def _better(self, names: Sequence[str], scale: float, most: int) -> int:
        """Makes the cheapest chain of up to so many moves that lowers the sum of prices; returns
        its length, 0: it found none."""
        before = self._price(scale)
        for name, stripe, other in self._moves(names, scale)[:_TRIED]:
            undo = [(name, stripe, int(self.chosen[name][stripe]))]
            self._move(name, stripe, other)
            while self._price(scale) >= before - 1e-9:
                further = self._moves(names, scale) if len(undo) < most else []
                further = [it for it in further if it[:2] not in {did[:2] for did in undo}]
                if not further:
                    break
                undo.append((*further[0][:2], int(self.chosen[further[0][0]][further[0][1]])))
                self._move(*further[0])
            if self._price(scale) < before - 1e-9:
                return len(undo)
            for did in reversed(undo):
                self._move(*did)
        return 0

    def _move(self, name: str, stripe: int, number: int) -> None:
        self.drop(name, stripe)
        self.take(name, stripe, number)

    def _moves(self, names: Sequence[str], scale: float) -> list[tuple[str, int, int]]:
        """Stripes of these jobs that may leave the resource that takes the longest, and for which
        tree; that which adds least there, beside what it takes away, first."""
        worst = int(self.load.argmax())
        found: list[tuple[float, str, int, int]] = []
        for name in names:
            it, had = self.candidates[name], self.chosen[name]
            column = int(np.searchsorted(it.columns, worst))
            if column == len(it.columns) or it.columns[column] != worst:
                continue
            loads = (had >= 0) & (it.seconds[had, column] > 0)
            for number in np.unique(had[loads]).tolist():
                stripe = int(np.flatnonzero(had == number)[0])
                self.drop(name, stripe)
                other, cost = self._cheapest(name, scale, besides=column)
                self.take(name, stripe, number)
                if other >= 0:
                    found.append((cost, name, stripe, other))
        return [it[1:] for it in sorted(found)]

    def _price(self, scale: float) -> float:
        """The logarithm of the sum of all prices."""
        at = scale * self.load
        top = float(at.max(initial=0.0))
        return top + float(np.log(np.exp(at - top).sum()))

    def _is_whole(self) -> bool:
        return all((had >= 0).all() for had in self.chosen.values())

    def state(self) -> tuple[float, dict[str, Ints]]:
        """How good it is, and what is chosen."""
        return self.step_s, {name: had.copy() for name, had in self.chosen.items()}

    def restore(self, state: tuple[float, Mapping[str, Ints]]) -> None:
        """As :meth:`state` gave it; of the same jobs."""
        for name, numbers in state[1].items():
            for stripe, number in enumerate(numbers.tolist()):
                if self.chosen[name][stripe] != number:
                    self.drop(name, stripe)
                    self.take(name, stripe, number)

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


def _scale(before: Network, now: Network) -> Floats:
    """(resources,): by how much a byte takes longer than before; of what is down now, or was, 1."""
    had = np.concatenate([before.rates, before.processing])
    has = np.concatenate([now.rates, now.processing])
    same = (had == has) | (had <= 0) | (has <= 0)
    scale: Floats = np.divide(had, has, out=np.ones(len(had)), where=~same)
    return scale
