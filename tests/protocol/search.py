"""The search that the checks of this folder share: all that a model can come to, nearest first.

A model says what a state is, how it moves, and what must hold in each state. The network of such a
model is a set that packets enter when they are sent and never leave: at any moment any of them may
arrive, again and again (duplication, delay without bound, reordering), or never (loss).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

S = TypeVar("S", bound=Hashable)  # a state, whatever it is
R = TypeVar("R", bound=Hashable)
T = TypeVar("T", bound=Hashable)

MOST_STATES = 2_000_000
DEADLINE_S = 1800.0
_LOOKS_AT_THE_CLOCK = 1024
"""Once in so many states."""


class Numbered(Generic[T]):
    """Things of a model as numbers, which are quicker to compare: equal ones have the same."""

    def __init__(self) -> None:
        self._things: list[T] = []
        self._numbers: dict[T, int] = {}

    def __len__(self) -> int:
        return len(self._things)

    def __getitem__(self, number: int) -> T:
        return self._things[number]

    def __contains__(self, thing: T) -> bool:
        return thing in self._numbers

    def number(self, thing: T) -> int:
        """From 0 on, as they come."""
        number = self._numbers.setdefault(thing, len(self._things))
        if number == len(self._things):
            self._things.append(thing)
        return number


class Violation(AssertionError):  # noqa: N818 (a finding, not a failure of the search)
    """A promise that does not hold, with the shortest way there."""


class Model(Generic[S]):
    """What :func:`search` needs to know."""

    def start(self) -> S:
        raise NotImplementedError

    def moves(self, state: S) -> Iterable[tuple[object, S]]:
        """What may happen next; ``str`` of the first says what that is.

        Raises Violation if it must not happen."""
        raise NotImplementedError

    def canonical(self, state: S) -> S:
        """The one of all states that come to the same as this one."""
        return state

    def check(self, state: S) -> None:
        """Raises Violation if the state breaks a promise."""
        raise NotImplementedError


@dataclass(frozen=True)
class Visited(Generic[S]):
    """What a search has seen: all states, and how many moves lead from one to another, or back."""

    states: Collection[S]
    transitions: int


def search(
    model: Model[S], *, most_states: int = MOST_STATES, deadline_s: float = DEADLINE_S
) -> Visited[S]:
    """Visits every state. Raises Violation with the shortest trace, TimeoutError past a bound."""
    ends_s = time.monotonic() + deadline_s
    canonical, moves, check = model.canonical, model.moves, model.check
    start = canonical(model.start())
    came_from: dict[S, tuple[S, object] | None] = {start: None}
    queue = deque([start])
    transitions = 0
    visited = 0
    while queue:
        state = queue.popleft()
        visited += 1
        if visited % _LOOKS_AT_THE_CLOCK == 0 and time.monotonic() > ends_s:
            raise TimeoutError(f"{len(came_from)} states after {deadline_s} s, and more to come")
        try:
            check(state)
            for step, after in moves(state):
                after = canonical(after)
                transitions += 1
                if after not in came_from:
                    came_from[after] = (state, step)
                    queue.append(after)
        except Violation as violation:
            raise Violation("\n".join([str(violation), *_trace(came_from, state)])) from None
        if len(came_from) > most_states:
            raise TimeoutError(f"more than {most_states} states")
    return Visited(came_from.keys(), transitions)


def _trace(came_from: dict[S, tuple[S, object] | None], state: S) -> list[str]:
    steps: list[object] = []
    origin = came_from[state]
    while origin is not None:
        steps.append(origin[1])
        origin = came_from[origin[0]]
    return [f"  {number}. {step}" for number, step in enumerate(reversed(steps), 1)]


@dataclass
class Progress(Generic[R]):
    """That what goes on by itself comes to an end. ``go`` is one round of it, ``ended`` its end."""

    go: Callable[[R], R]
    has_ended: Callable[[R], bool]
    tell: Callable[[R], object]  # where it has come to, for who reads it
    _settled: set[R] = field(default_factory=set)

    def check(self, at: R) -> None:
        """Raises Violation if it goes round for ever."""
        passed: set[R] = set()
        while at not in self._settled and not self.has_ended(at):
            if at in passed:
                raise Violation(f"no progress: all resend for ever, at {self.tell(at)}")
            passed.add(at)
            at = self.go(at)
        self._settled |= passed
