"""Joins the job anew, again and again, until all ranks can go back to the network together."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Iterator
from typing import Protocol

from ina.errors import InaError
from ina.host import Session
from ina.host.member.latch import OnFailure
from ina.host.stop import Stop
from ina.torch.fallback.gate import Gate
from ina.torch.fallback.member import Member

_log = logging.getLogger("ina.torch")

TRY_S = 10.0
"""One try to join: longer than any pause, so that ranks meet."""
_PAUSES_S = (0.25, 0.5, 1.0, 2.0)
_LONGEST_PAUSE_S = 4.0
STALE_S = 10.0
"""A session that others lack for so long, and for some ballots, is given up, and joined anew."""
_STALE_BALLOTS = 3
_SHORT_S = 60.0
"""Who lost the network again before this does not go back to it at once."""
_LOOK_S = 0.05


class Seats(Protocol):
    """What a worker does for its group's return."""

    def leave(self) -> None:
        """Leave the former incarnation, of which nothing is needed any more."""

    def join(self, on_failure: OnFailure, stop: Stop, timeout_s: float) -> Session:
        """Join the next one, beside it; raises InaError."""

    def give_up(self) -> None:
        """Leave what was joined last; it was not used."""

    def use(self) -> None:
        """What was joined last is what the group sends to from now on."""


class Comeback:
    """Of one rank, after each loss."""

    def __init__(self, seats: Seats, gate: Gate, where: str, closing: threading.Event) -> None:
        """``where``: the group and the rank, for messages."""
        self._seats, self._gate, self._where = seats, gate, where
        self._closing = closing
        self._stop = Stop()
        self._short_stays = 0

    def end(self) -> None:
        """End a try that is under way; ``closing`` is set."""
        self._stop.set()

    def next(self, former: Member) -> Member | None:
        """Returns what all ranks have gone to; None: the group closes before they have."""
        self._seats.leave()
        stayed_s = time.monotonic() - former.since_s
        is_short = former.session is not None and former.is_return and stayed_s < _SHORT_S
        self._short_stays = self._short_stays + 1 if is_short else 0
        first_s = min(2.0**self._short_stays, _SHORT_S) if is_short else 0.0
        has_said = False
        for pause_s in _pauses(first_s):
            if self._closing.wait(pause_s):
                break
            member = Member(is_return=True)
            why = self._join(member)
            if why is None and (why := self._offer(member)) is None:
                return member
            if self._closing.is_set():
                break
            level = logging.INFO if has_said else logging.WARNING
            _log.log(level, "ina: %s: not back to the network yet: %s", self._where, why)
            has_said = True
        return None

    def _join(self, member: Member) -> str | None:
        """Why not; None: it has joined."""
        try:
            member.joined(self._seats.join(member.on_failure, self._stop, TRY_S))
        except InaError as error:
            return str(error)
        except Exception as error:  # the group goes on over Gloo, whatever it is
            _log.debug("ina: %s: could not join", self._where, exc_info=True)
            return f"{type(error).__name__}: {error}"
        return None

    def _offer(self, member: Member) -> str | None:
        """Waits until the group uses it (None), or does not any more: why."""
        self._gate.offer(member)
        while not member.used.wait(_LOOK_S):
            why = self._why_not(member)
            if why is not None and self._gate.withdraw(member):
                self._seats.give_up()
                return why
        return None

    def _why_not(self, member: Member) -> str | None:
        if self._closing.is_set():
            return "the group closes"
        if member.lost.is_set():
            return member.reason
        if time.monotonic() - member.since_s > STALE_S and self._gate.refused >= _STALE_BALLOTS:
            return "other ranks have not joined with this one"
        return None


def _pauses(first_s: float) -> Iterator[float]:
    return itertools.chain((first_s,), _PAUSES_S, itertools.repeat(_LONGEST_PAUSE_S))
