"""Why a session's operations fail: settled once, asked by many threads."""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Callable

from ina.errors import InaError
from ina.extension.host import Mismatch, Transport
from ina.host import failure
from ina.host.errors import CorruptedSumError, OperationTimeoutError, RanksDifferError
from ina.host.halts import HaltWatch
from ina.host.node import NodePlace
from ina.host.ticket import Ticket

_log = logging.getLogger(__name__)

OnFailure = Callable[[InaError], bool]
"""Called once, from a thread of the session, before its operations fail. True: it has taken over
(it froze the session, for instance), nothing fails."""


Asks = Callable[[], bool]
"""Tells the controller how this worker gets on, now; returns whether its answer may come."""

# Until the controller has heard from all ranks and has told how they differ.
_ANSWER_S = 5.0


class FailureLatch:
    """The first reason for which a session cannot go on. Thread-safe."""

    def __init__(
        self, ticket: Ticket, transport: Transport, on_failure: OnFailure | None, halts: bool
    ) -> None:
        """`halts`: where results are no sums the transport does so, and `on_failure` is asked."""
        self.node: NodePlace | None = None
        """What the worker sends to on its own host; None: it sends to the switch."""
        self.ticket = ticket
        """By which the session works now."""
        self._halts = halts
        self._transport = transport
        self._lock = threading.Lock()
        self._error: InaError | None = None
        self._on_failure = on_failure
        self._handed_over: InaError | None = None  # what others have taken over for
        self._frozen = False
        self._is_told = False
        self._hints: dict[str, str] = {}
        self._asks: Asks | None = None
        self._told = threading.Condition(self._lock)  # there is an error
        self._halt_watch: HaltWatch | None = None
        if halts:
            name = f"ina-halt-{ticket.job_name}-{ticket.rank}"
            self._halt_watch = HaltWatch(transport, self._on_halt, name)

    def asks(self, asks: Asks) -> None:
        """Where to turn to once ranks are seen to reduce different things."""
        self._asks = asks

    def fail(self, error: InaError) -> None:
        """End all pending and later operations with `error`, unless they have failed before."""
        with self._lock:
            if self._is_settled():
                _log.debug("too late to matter: %s", error)
                return
            hook, self._on_failure = self._on_failure, None
        if hook is not None and self._takes_over(hook, error):
            with self._lock:
                self._handed_over = error
                self._told.notify_all()
            return
        with self._lock:
            if self._is_settled():
                return
            self._error = error
            self._told.notify_all()
        # Who waits for an operation, or begins the next one, gets it as an exception.
        _log.info("%s", error)
        self._transport.fail()

    def close(self, untold: InaError | None = None) -> None:
        """End its thread, if it has one. Call after the transport was closed.

        `untold`: of which nobody has heard unless the session has failed.
        """
        if untold is not None and self._error is None:
            _log.error("%s\n%s", untold, untold.detail)
        if self._error is not None and not self._is_told:
            _log.error("%s", self._error)
        if self._halt_watch is not None:
            self._halt_watch.close()

    def settled(self) -> InaError | None:
        """Return why the session gives up, or has been given to others; None: it has not."""
        with self._lock:
            return self._error or self._handed_over

    def _is_settled(self) -> bool:
        return self._error is not None or self._handed_over is not None or self._frozen

    def _on_halt(self) -> None:
        found = self._transport.corruption()
        if found is not None:
            return self.fail(CorruptedSumError(failure.describe_corruption(self.ticket, found)))
        mismatch = self._transport.mismatch()
        assert mismatch is not None, "nothing else halts a transport"
        with self._lock:
            is_told = self._waits_for_word()
        if not is_told:
            self.fail(self._differ(mismatch))

    def _waits_for_word(self) -> bool:
        """Whether the controller has said why, after a result that does not fit. With the lock."""
        if self._asks is not None and self._asks():
            self._told.wait_for(self._is_settled, _ANSWER_S)
        return self._is_settled()

    def _differ(self, mismatch: Mismatch) -> RanksDifferError:
        told = self._transport.submissions()
        return RanksDifferError(failure.describe_mismatch(self.ticket, mismatch.operation, told))

    def freeze(self) -> None:
        """Freeze the transport, unless the session has failed: then raise its error."""
        with self._lock:
            if self._error is None and self._transport.freeze():
                self._frozen = True
                return
        error = self.told()
        assert error is not None, "a transport that is open and has not failed can be frozen"
        raise error

    def hint(self, topic: str, text: str | None) -> None:
        """Remember what the controller says about a topic; None: it does not hold any more."""
        with self._lock:
            if text is None:
                self._hints.pop(topic, None)
            else:
                self._hints[topic] = text

    def told(self) -> InaError | None:
        """As :meth:`error`, to somebody who raises it: it needs no line in the log."""
        self._is_told = True
        return self.error()

    def error(self) -> InaError | None:
        """Return why the session failed, a copy for each caller; None: it has not.

        Where ranks reduce different things, it waits some seconds for the controller to say how.
        """
        with self._lock:
            mismatch = None if self._halts else self._transport.mismatch()
            if self._error is None and mismatch is not None:
                self._waits_for_word()
                self._error = self._error or self._differ(mismatch)
            if self._error is None and not self._halts and (found := self._transport.corruption()):
                self._error = CorruptedSumError(failure.describe_corruption(self.ticket, found))
            if self._error is None:
                report = self._transport.failure()
                if report is None:
                    return None
                stats = self._transport.stats()
                said = self._said()
                text = failure.describe_stall(self.ticket, report, stats, self.node, said)
                self._error = OperationTimeoutError(text)
            error = copy.copy(self._error)  # a traceback belongs to one thread
            error.__cause__ = self._error.__cause__
            return error

    def wait_error(self, timeout_s: float) -> OperationTimeoutError:
        """Return the error of a wait that was shorter than the operation."""
        stats, oldest_seq = self._transport.stats(), self._transport.lanes().oldest_seq
        with self._lock:
            said = self._said()
            text = failure.describe_wait(self.ticket, timeout_s, stats, oldest_seq, self.node, said)
        return OperationTimeoutError(text)

    def _said(self) -> str | None:
        return "; ".join(self._hints.values()) or None

    def _takes_over(self, hook: OnFailure, error: InaError) -> bool:
        try:
            return hook(error)
        except Exception:
            _log.exception("on_failure failed with job %r", self.ticket.job_name)
            return False
