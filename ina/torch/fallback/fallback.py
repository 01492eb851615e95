"""Policy ``on_switch_loss="fallback"``: a group goes on over Gloo when its switch is lost.

Once one rank knows, no rank sends or accepts anything any more. Then the ranks bring each other to
the same set of finished chunks (:mod:`ina.torch.fallback.agreement`), sum the others over Gloo
(:mod:`ina.torch.fallback.resume`), and every later all_reduce goes there too. No sum is lost, and
none is counted twice.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto

import torch
from torch._C._distributed_c10d import Store

from ina.errors import InaError
from ina.host import Session
from ina.host.errors import (
    CorruptedSumError,
    JobEndedError,
    RanksDifferError,
    SwitchLostError,
)
from ina.host.frozen import Frozen
from ina.torch.errors import FallbackError, GroupClosedError
from ina.torch.fallback.agreement import agree, hand_on
from ina.torch.fallback.peers import GlooPeers
from ina.torch.fallback.resume import Resumption
from ina.torch.fallback.signal import POLL_S, LossSignal
from ina.torch.fallback.sums import GlooSum, GlooSums

_log = logging.getLogger("ina.torch")

_HEARSAY_S = 2.0
"""How long a job that ended for no known reason waits for another rank that knows it."""
_AGREE_TIMEOUT = timedelta(seconds=60)
"""A rank answers as soon as it knows, whatever it computes: this bounds one that is gone."""
_END_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class SwitchLoss:
    """On this rank; the group has gone on over Gloo since."""

    reason: str
    unix_s: float
    recovery_s: float
    """From this rank's notice until all that had been under way went over Gloo."""
    chunks_received: int
    """Results that the network had delivered to another rank, but not to this one."""
    operations_resumed: int
    elems_resumed: int
    """Elements of those that no rank had a result of: they were summed over Gloo."""


class _Path(Enum):
    NETWORK = auto()
    RECOVERING = auto()
    GLOO = auto()
    NOWHERE = auto()


class Fallback:
    """Watches over one session, and takes its place when the switch is lost."""

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta, name: str) -> None:
        """Connects the ranks, all of which must call it; ``name`` is the group's."""
        self._rank, self._name, self._timeout = rank, name, timeout
        self._peers = GlooPeers(store, rank, size, timeout)
        self._sums = GlooSums(self._peers, size, name)
        self._signal = LossSignal(store, size)
        self._lock = threading.Lock()
        self._path = _Path.NETWORK
        self._waiting: list[GlooSum] = []  # came while the ranks agreed
        self._error: InaError | None = None  # with NOWHERE
        self._reason: str | None = None
        self._loss: SwitchLoss | None = None
        self._lost = threading.Event()
        self._closing = False
        self._settled = threading.Event()
        self._session: Session | None = None
        self._monitor: threading.Thread | None = None

    @property
    def loss(self) -> SwitchLoss | None:
        """How the group came to go on over Gloo; None: it has not."""
        return self._loss

    def on_failure(self, error: InaError) -> bool:
        """For the session, before it fails: True when this takes over instead."""
        reason: str | None = None
        if isinstance(error, SwitchLostError | CorruptedSumError):
            reason = str(error)
        elif isinstance(error, JobEndedError) and not isinstance(error, RanksDifferError):
            reason = self._signal.hear(_HEARSAY_S)
        if reason is None:
            return False
        self._reason = reason
        self._lost.set()
        return True

    def watch(self, session: Session) -> None:
        """Take over when ``session`` loses its switch, or another rank's does."""
        self._session = session
        self._monitor = threading.Thread(
            target=self._watch, args=(session,), name=f"ina-fallback-{self._name}", daemon=True
        )
        self._monitor.start()

    def submit(self, tensor: torch.Tensor, average: bool) -> GlooSum:
        """Sum a contiguous tensor over Gloo: what the session no longer takes."""
        one = GlooSum(tensor, average)
        with self._lock:
            path = self._path
            if path is _Path.GLOO:
                self._sums.start(one)
            elif path is not _Path.NOWHERE:
                self._waiting.append(one)
        if path is _Path.NOWHERE:
            one.end(self._error)
        return one

    def fail(self, error: InaError) -> None:
        """End what goes over Gloo, or waits to, with ``error``; and all that comes."""
        with self._lock:
            if self._path is _Path.NOWHERE:
                return
            self._path, self._error = _Path.NOWHERE, error
            waiting, self._waiting = self._waiting, []
        self._sums.close(error)
        for one in waiting:
            one.end(error)

    def close(self, leave_timeout_s: float) -> None:
        """Wait at most so long until no rank needs this one's results; then stop. Idempotent."""
        session = self._session
        if session is not None and session.error() is None and leave_timeout_s > 0:
            if self._path is _Path.NETWORK:
                self._signal.done(leave_timeout_s, lambda: session.error() is not None)
            if self._signal.heard() is not None:
                self._settled.wait(leave_timeout_s)
        self._closing = True
        self._lost.set()
        self.fail(GroupClosedError(f"group {self._name}: it has been destroyed"))
        if self._monitor is not None and self._monitor is not threading.current_thread():
            self._monitor.join(_END_TIMEOUT_S)

    def _watch(self, session: Session) -> None:
        while not self._lost.wait(POLL_S) and self._reason is None:
            self._reason = self._signal.heard()
        if self._reason is not None and not self._closing:
            self._take_over(session, self._reason)
        self._settled.set()

    def _take_over(self, session: Session, reason: str) -> None:
        where = f"group {self._name}, rank {self._rank}"
        _log.warning("ina: %s: %s; going on over Gloo", where, reason)
        self._signal.tell(reason)
        with self._lock:
            if self._path is _Path.NETWORK:
                self._path = _Path.RECOVERING
            failed = self._error
        resumption: Resumption | None = None
        began_s, unix_s = time.monotonic(), time.time()
        self._peers.set_timeout(min(self._timeout, _AGREE_TIMEOUT))
        try:
            # A rank that cannot go on says so, lest the others wait for it.
            frozen = _freeze(session) if failed is None else failed
            if isinstance(frozen, Frozen):
                resumption = Resumption(frozen)
            steps = agree(frozen, self._peers)
            assert isinstance(frozen, Frozen)  # else no rank has agreed
            assert resumption is not None
            received = hand_on(frozen, steps, self._peers)
            self._peers.set_timeout(self._timeout)
            resumption.start(steps, self._sums)
        except Exception as error:  # whatever it is: nobody may wait for sums that never come
            said = " ".join(str(error).split())
            lost = FallbackError(f"{where}: {reason}; and it cannot go on over Gloo: {said}")
            _log.error("ina: %s", lost)
            self.fail(lost)
            if resumption is not None:
                resumption.fail(lost)
            return
        self._loss = SwitchLoss(
            reason,
            unix_s,
            time.monotonic() - began_s,
            received,
            resumption.operations,
            resumption.elems,
        )
        self._open()
        _log.warning(
            "ina: %s: goes on over Gloo, %.2f s after it noticed: %d results came from other ranks,"
            " %d elements of %d all_reduces under way are summed by Gloo",
            *(where, self._loss.recovery_s, received, resumption.elems, resumption.operations),
        )

    def _open(self) -> None:
        """Start what has come meanwhile, then let all that comes go straight to Gloo."""
        with self._lock:
            if self._path is _Path.RECOVERING:
                self._path = _Path.GLOO
                for one in self._waiting:
                    self._sums.start(one)
                self._waiting.clear()


def _freeze(session: Session) -> Frozen | InaError:
    """The frozen session, or why it has failed before it could be frozen."""
    try:
        return session.freeze()
    except InaError as error:
        return error
