"""Why a session's operations fail: settled once, asked by many."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from dataclasses import dataclass

from ina.congestion import WindowError
from ina.errors import InaError
from ina.extension.host import Mismatch, TransportEngine
from ina.host import failure
from ina.host.errors import CorruptedSumError, OperationTimeoutError, RanksDifferError
from ina.host.member.driver import Driver, Flag
from ina.host.node import NodePlace
from ina.host.ticket import Ticket

_log = logging.getLogger(__name__)

OnFailure = Callable[[InaError], bool]
"""Called once, from a thread of the session, before its operations fail. True: it has taken over
(it froze the session, for instance), nothing fails."""

# Until the controller has heard from all ranks and has told how they differ.
_ANSWER_S = 5.0


@dataclass(frozen=True)
class Voice:
    """How what a worker has to say gets to its controller before the next regular heartbeat."""

    hurry: Flag
    """Speak now."""
    stopping: Flag
    """Nothing more is said."""


class FailureLatch:
    """The first reason for which a session cannot go on."""

    def __init__(
        self,
        ticket: Ticket,
        transport: TransportEngine,
        driver: Driver,
        on_failure: OnFailure | None = None,
        *,
        halts: bool = False,
        node: NodePlace | None = None,
        is_shm: bool = False,
        voice: Voice | None = None,
    ) -> None:
        """`halts`: where results are no sums the transport does so, and `on_failure` is asked.

        `node`: what the worker sends to on its own host; None: it sends to the switch. `is_shm`:
        over shared memory. `voice`: to a controller that may know more; None: there is none.
        """
        self.ticket = ticket
        """By which the session works now."""
        self._transport, self._driver = transport, driver
        self._halts, self._node, self._is_shm, self._voice = halts, node, is_shm, voice
        self._error: InaError | None = None
        self._on_failure = on_failure
        self._handed_over: InaError | None = None  # what others have taken over for
        self._frozen = False
        self._is_told = False
        self._hints: dict[str, str] = {}
        self.is_settled = driver.flag()
        """There is an error, or others have taken over."""

    def works_by(self, ticket: Ticket) -> None:
        """From now on."""
        self.ticket = ticket

    async def fail(self, error: InaError) -> None:
        """End all pending and later operations with `error`, unless they have failed before."""
        if self._has_settled():
            _log.debug("too late to matter: %s", error)
            return
        hook, self._on_failure = self._on_failure, None
        if hook is not None and await self._takes_over(hook, error):
            self._handed_over = error
            self.is_settled.set()
            return
        if self._has_settled():
            return
        self._error = error
        self.is_settled.set()
        # Who waits for an operation, or begins the next one, gets it as an exception.
        _log.info("%s", error)
        self._transport.fail()

    def close(self, untold: WindowError | None = None) -> None:
        """Say what nobody was told. Call after the transport was closed.

        `untold`: of which nobody has heard unless the session has failed.
        """
        if untold is not None and self._error is None:
            _log.error("%s\n%s", untold, untold.detail)
        if self._error is not None and not self._is_told:
            _log.error("%s", self._error)

    def settled(self) -> InaError | None:
        """Return why the session gives up, or has been given to others; None: it has not."""
        return self._error or self._handed_over

    def _has_settled(self) -> bool:
        return self._error is not None or self._handed_over is not None or self._frozen

    async def on_halt(self) -> None:
        """The transport has halted."""
        found = self._transport.corruption()
        if found is not None:
            text = failure.describe_corruption(self.ticket, found)
            return await self.fail(CorruptedSumError(text))
        mismatch = self._transport.mismatch()
        assert mismatch is not None, "nothing else halts a transport"
        if not await self._has_word():
            await self.fail(self._differ(mismatch))

    async def _has_word(self) -> bool:
        """Whether the controller has said why, after a result that does not fit."""
        if self._voice is not None:
            self._voice.hurry.set()
            if not (self._voice.stopping.is_set() or self._has_settled()):
                await self._driver.wait(self.is_settled, _ANSWER_S)
        return self._has_settled()

    def _differ(self, mismatch: Mismatch) -> RanksDifferError:
        told = self._transport.submissions()
        return RanksDifferError(failure.describe_mismatch(self.ticket, mismatch.operation, told))

    async def freeze(self) -> None:
        """Freeze the transport, unless the session has failed: then raise its error."""
        if self._error is None and self._transport.freeze():
            self._frozen = True
            return
        error = await self.told()
        assert error is not None, "a transport that is open and has not failed can be frozen"
        raise error

    def hint(self, topic: str, text: str | None) -> None:
        """Remember what the controller says about a topic; None: it does not hold any more."""
        if text is None:
            self._hints.pop(topic, None)
        else:
            self._hints[topic] = text

    async def told(self) -> InaError | None:
        """As :meth:`error`, to somebody who raises it: it needs no line in the log."""
        self._is_told = True
        return await self.error()

    async def error(self) -> InaError | None:
        """Return why the session failed, a copy for each caller; None: it has not.

        Where ranks reduce different things, it waits some seconds for the controller to say how.
        """
        mismatch = None if self._halts else self._transport.mismatch()
        if self._error is None and mismatch is not None:
            await self._has_word()
            self._error = self._error or self._differ(mismatch)
        if self._error is None and not self._halts and (found := self._transport.corruption()):
            self._error = CorruptedSumError(failure.describe_corruption(self.ticket, found))
        if self._error is None:
            report = self._transport.failure()
            if report is None:
                return None
            self._error = OperationTimeoutError(
                failure.describe_stall(self.ticket, report, self._situation())
            )
        error = copy.copy(self._error)  # a traceback belongs to one thread
        error.__cause__ = self._error.__cause__
        return error

    def wait_error(self, timeout_s: float) -> OperationTimeoutError:
        """Return the error of a wait that was shorter than the operation."""
        oldest_seq = self._transport.lanes().oldest_seq
        text = failure.describe_wait(self.ticket, timeout_s, oldest_seq, self._situation())
        return OperationTimeoutError(text)

    def _situation(self) -> failure.Situation:
        return failure.Situation(self._transport.stats(), self._node, self._is_shm, self.said())

    def said(self) -> str | None:
        """What the controller has said about why nothing goes on."""
        return "; ".join(self._hints.values()) or None

    async def _takes_over(self, hook: OnFailure, error: InaError) -> bool:
        try:
            return await self._driver.outside(lambda: hook(error))
        except Exception:
            _log.exception("on_failure failed with job %r", self.ticket.job_name)
            return False
