"""One incarnation of the job, as a rank takes part in it: its session, and how that was lost."""

from __future__ import annotations

import threading
import time

from ina.errors import InaError
from ina.host import Handle, Session
from ina.host.errors import (
    CorruptedSumError,
    JobEndedError,
    RanksDifferError,
    SwitchLostError,
)
from ina.torch.fallback.signal import LossSignal
from ina.torch.fallback.sums import GlooSum

_HEARSAY_S = 2.0
"""How long a job that ended for no known reason waits for another rank that knows it."""


class Member:
    """Of the group's first session, or of one that it may go back to."""

    def __init__(self, signal: LossSignal | None = None, *, is_return: bool = False) -> None:
        """``signal``: of the first; another one has none before it is used."""
        self.is_return = is_return
        self.signal = signal
        self.session: Session | None = None
        self.epoch = 0
        self.since_s = time.monotonic()
        self.before = 0
        """Sums of the group that went elsewhere, before its session's first."""
        self.reason: str | None = None
        """Why its switch is lost; None: it is not, as far as this rank knows."""
        self.may_return = True
        self.lost = threading.Event()
        """There is a reason, or the group closes."""
        self.used = threading.Event()
        """All ranks send their sums there, or did."""
        self.settled = threading.Event()
        """It has been lost, and what was under way goes over Gloo or has failed."""

    def joined(self, session: Session) -> None:
        """This is its session."""
        self.session, self.epoch = session, session.ticket.epoch
        self.since_s = time.monotonic()

    def listen(self) -> None:
        """Hear from other ranks that it is lost, if they say so.

        What this rank has found meanwhile stays: without a reason nobody would take over.
        """
        assert self.signal is not None
        heard = self.signal.heard()
        if heard is not None and self.reason is None:
            self.reason = heard

    def on_failure(self, error: InaError) -> bool:
        """For the session, before it fails: True when others take over instead."""
        reason: str | None = None
        if not self.used.is_set():  # nothing is lost with it
            reason = str(error)
        elif isinstance(error, SwitchLostError | CorruptedSumError):
            reason = str(error)
            # It would be placed there again, and nobody knows whether that adds rightly now.
            self.may_return = not isinstance(error, CorruptedSumError)
        elif isinstance(error, JobEndedError) and not isinstance(error, RanksDifferError):
            reason = self.signal.hear(_HEARSAY_S) if self.signal is not None else None
        if reason is None:
            return False
        self.reason = reason
        self.lost.set()
        return True

    def count_on_from(self, sums: int) -> None:
        """See :class:`ina.torch.fallback.gate.JoinedSession`."""
        assert self.session is not None
        self.before = sums
        self.session.count_on_from(sums)

    def start(self, one: GlooSum) -> None:
        """See :class:`ina.torch.fallback.gate.JoinedSession`."""
        assert self.session is not None
        addresses = one.source.data_ptr(), one.target.data_ptr()
        handle = self.session.submit(*addresses, one.what, keep=(one.source, one.target))
        handle.add_done_callback(lambda ended: _end(one, ended))


def _end(one: GlooSum, handle: Handle[None]) -> None:
    error: Exception | None = None
    try:
        handle.wait()  # it has ended; this lets the session forget the memory
    except Exception as failure:
        error = failure
    one.end(error)
