"""Which way each all_reduce of a group goes: the network, Gloo, or first a look where.

Once the switch is lost, ranks count the all_reduces that go over Gloo. All submit the same in the
same order, so a number means the same one everywhere. Before some of them, the same ones on all
ranks, they put a ballot into Gloo: has every rank joined the same new incarnation of the job? Until
they know, what comes waits. If so, it and all that comes later goes to the network, on every rank
from the same all_reduce on; else to Gloo until the next ballot.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from ina.errors import InaError
from ina.torch.fallback.sums import GlooSum

FIRST_BALLOT = 4
"""All_reduces over Gloo before the first ballot."""
PAUSE_S = 0.25
"""Between two ballots, about: of as many all_reduces as the fastest rank has done in it."""
_MOST = 1 << 16


@dataclass(frozen=True)
class Ballot:
    """What a rank puts in; and, of all ranks together, the least of each number."""

    epoch: int
    """Of the incarnation that it has joined; 0: of none."""
    negated: int
    """The same times -1, so that the least of it tells the newest epoch."""
    pause: int
    """How many all_reduces may go before the next one."""

    @property
    def is_unanimous(self) -> bool:
        """Whether every rank has joined the same."""
        return self.epoch == -self.negated > 0


class Gloo(Protocol):
    """What takes the sums while the network does not; all ranks call the same in turn."""

    def start(self, one: GlooSum) -> None:
        """Start a sum, which ends later, in another thread."""

    def ask(self, ballot: Ballot, answered: Callable[[Ballot | None], None]) -> None:
        """Have the least of all ranks' numbers told later, in another thread, after the sums that
        were started before have ended; None: that failed."""


class JoinedSession(Protocol):
    """A session that this rank has joined."""

    @property
    def epoch(self) -> int:
        """Of the job's incarnation."""

    def count_on_from(self, sums: int) -> None:
        """So many of the group's went before the first that is started here."""

    def start(self, one: GlooSum) -> None:
        """Start a sum, which ends later; raises InaError if it cannot."""


class Route(Enum):
    """Where all_reduces go."""

    NETWORK = auto()
    RECOVERING = auto()  # the ranks agree on what the network has summed
    GLOO = auto()
    ASKING = auto()  # a ballot is on its way
    NOWHERE = auto()


class Gate:
    """Of one rank. Thread-safe; callers submit one at a time, in the ranks' common order."""

    def __init__(
        self,
        gloo: Gloo,
        crossed: Callable[[JoinedSession], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``crossed`` hears, in the midst of it, that all goes to this session from now on."""
        self._gloo, self._crossed, self._clock = gloo, crossed, clock
        self._lock = threading.RLock()  # a sum that cannot start may end at once
        self._waiting: deque[GlooSum] = deque()
        self._error: InaError | None = None  # with NOWHERE
        self._network: JoinedSession | None = None  # None: the first, which takes sums by itself
        self._candidate: JoinedSession | None = None
        self._voted: JoinedSession | None = None
        self._number = 0
        self._ballot_before: int | None = None
        self._pause = FIRST_BALLOT  # that this rank would make
        self._ended = 0, 0.0  # the last sum that is known to have ended, and when
        self.way = Route.NETWORK
        self.gloo_sums = 0
        """That came since the switch was lost last, and went over Gloo."""
        self.returns = False
        """Whether all ranks want to go back, since the switch was lost last."""
        self.refused = 0
        """Ballots that were not unanimous since the last candidate was offered."""

    @property
    def error(self) -> InaError | None:
        """Why nothing goes anywhere; None: it does."""
        return self._error

    def submit(self, one: GlooSum) -> None:
        """Start a sum, now or later, wherever it goes."""
        failed: Exception | None = None
        with self._lock:
            if self.way is Route.NOWHERE:
                failed = self._error
            elif self.way is Route.NETWORK and self._network is not None:
                failed = self._over_network(self._network, one)
            else:
                self._waiting.append(one)
                self._go_on()
        if failed is not None:
            one.end(failed)

    def recover(self) -> None:
        """The network is lost: what comes waits for :meth:`open`."""
        with self._lock:
            if self.way is Route.NETWORK:
                self.way = Route.RECOVERING

    def open(self, submitted: int, newest: int, *, returns: bool) -> None:
        """What waits, and what comes, goes over Gloo.

        ``submitted``: how many sums this rank has given to its session or, before that, elsewhere;
        ``newest``: the most that any rank has. ``returns``: whether all ranks want to go back.
        """
        with self._lock:
            if self.way is not Route.RECOVERING:
                return
            self.way, self.returns = Route.GLOO, returns
            self._number, self.gloo_sums = submitted, 0
            self._ballot_before = newest + FIRST_BALLOT + 1 if returns else None
            self._pause, self._ended = FIRST_BALLOT, (newest, self._clock())
            self._go_on()

    def offer(self, candidate: JoinedSession) -> None:
        """This rank has joined: it says so from the next ballot on."""
        with self._lock:
            self._candidate, self.refused = candidate, 0

    def withdraw(self, candidate: JoinedSession) -> bool:
        """Take it back; False: it is too late, or the ballot that it was put in is not known."""
        with self._lock:
            if self.way is not Route.NOWHERE and candidate in (self._voted, self._network):
                return False
            self._candidate = None
            return True

    def fail(self, error: InaError) -> bool:
        """End what waits, and what comes, with ``error``; False: it did so already."""
        with self._lock:
            if self.way is Route.NOWHERE:
                return False
            self.way, self._error = Route.NOWHERE, error
            waiting, self._waiting = self._waiting, deque()
        for one in waiting:
            one.end(error)
        return True

    def _go_on(self) -> None:
        """Send what waits, as far as it is known where."""
        while self._waiting and self.way is Route.GLOO:
            if self._ballot_before is not None and self._number + 1 >= self._ballot_before:
                self._ask()
                return
            self._number += 1
            self.gloo_sums += 1
            one = self._waiting.popleft()
            one.number = self._number
            one.sent(over_network=False)
            self._gloo.start(one)

    def _ask(self) -> None:
        self.way, self._voted = Route.ASKING, self._candidate
        epoch = 0 if self._voted is None else self._voted.epoch
        self._gloo.ask(Ballot(epoch, -epoch, self._pause), self._answered)

    def _answered(self, result: Ballot | None) -> None:
        failed: list[tuple[GlooSum, Exception]] = []
        with self._lock:
            voted, self._voted = self._voted, None
            if self.way is not Route.ASKING:
                return
            self._measure()
            if result is not None and result.is_unanimous:
                assert voted is not None, "this rank's ballot is one of them"
                failed = self._cross(voted)
            else:
                self.refused += 1
                # None: a rank is gone, of which the next sum over Gloo will tell.
                self._ballot_before = self._number + 1 + result.pause if result else None
                self.way = Route.GLOO
                self._go_on()
        for one, error in failed:
            one.end(error)

    def _measure(self) -> None:
        """By sums that have ended: many that waited may start at once, and take long."""
        number, since_s = self._ended
        self._ended = self._number, self._clock()
        took_s = max(self._ended[1] - since_s, 1e-6)
        self._pause = min(max(1, int((self._number - number) * PAUSE_S / took_s)), _MOST)

    def _cross(self, network: JoinedSession) -> list[tuple[GlooSum, Exception]]:
        self._network, self._candidate = network, None
        network.count_on_from(self._number)
        self._crossed(network)
        failed = []
        while self._waiting:
            one = self._waiting.popleft()
            if (error := self._over_network(network, one)) is not None:
                failed.append((one, error))
        self.way = Route.NETWORK  # the last step: who sees it sends to the session itself
        return failed

    def _over_network(self, network: JoinedSession, one: GlooSum) -> Exception | None:
        one.sent(over_network=True)
        try:
            network.start(one)
        except Exception as error:  # whatever it is: who waits must hear of it, and others go on
            return error
        return None
