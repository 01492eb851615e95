"""Collectives over Gloo with the bits of the network's."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from ina.errors import InaError
from ina.host.chunks import Span
from ina.host.word_sum import Place, WordSum
from ina.protocol.collective import Collective, Reduction
from ina.protocol.spec import ValueType
from ina.torch.errors import FallbackError
from ina.torch.fallback.exchanges import (
    Delivered,
    Exchange,
    FloatSum,
    IntegerSum,
    Least,
    Starter,
    Union,
    Unmade,
)
from ina.torch.fallback.packed import pack, unpack

_log = logging.getLogger("ina.torch")

_END_TIMEOUT_S = 5.0


class GlooSum:
    """One collective, for whoever waits for it; stands in for ``ina.host.Handle``.

    Over Gloo, or over the network if the group goes back to it before it is its turn.
    """

    def __init__(
        self,
        what: Collective,
        source: torch.Tensor,
        target: torch.Tensor | None = None,
        spans: Sequence[Span] | None = None,
    ) -> None:
        """``source``, ``target``: contiguous, of any shape, what the session would read and write;
        without ``target`` in place. ``spans``: ``source`` has these values of it, one behind the
        other, in place; None: all."""
        self.what, self.source, self.spans = what, source, spans
        self.target = source if target is None else target
        self.number = 0
        """In the order of submission in the group, from 1; before it goes anywhere."""
        self._lock = threading.Lock()
        self._error: Exception | None = None
        self._ended = threading.Event()
        self._callbacks: list[Callable[[GlooSum], object]] = []
        self._over_network: bool | None = None
        self._heard: Callable[[bool], object] | None = None

    def when_sent(self, function: Callable[[bool], object]) -> None:
        """Call ``function(over_network)`` once it is known where this goes; for one caller."""
        with self._lock:
            self._heard = function
            over_network = self._over_network
        if over_network is not None:
            function(over_network)

    def sent(self, *, over_network: bool) -> None:
        """Say where it goes, once."""
        with self._lock:
            self._over_network, heard = over_network, self._heard
        if heard is not None:
            heard(over_network)

    def add_done_callback(self, function: Callable[[GlooSum], object]) -> None:
        """Call ``function(self)`` at the end, from the thread that brings it, or now."""
        with self._lock:
            if not self._ended.is_set():
                self._callbacks.append(function)
                return
        function(self)

    def done(self) -> bool:
        """Return whether it has ended."""
        return self._ended.is_set()

    def wait(self) -> None:
        """Wait for the sum; raises :class:`FallbackError`, or the session's error."""
        self._ended.wait()
        if self._error is not None:
            raise self._error

    def end(self, error: Exception | None) -> None:
        """Say that the sum is there or why it is not. Only the first call counts."""
        with self._lock:
            if self._ended.is_set():
                return
            self._error = error
            self._ended.set()
            callbacks, self._callbacks = self._callbacks, []
        for function in callbacks:
            try:
                function(self)
            except Exception:
                _log.exception("ina: a callback of a collective over Gloo failed")


class GlooSums:
    """Starts sums one after the other and ends them in order, in two threads of its own.

    A sum may be several collectives of Gloo's, which knows them by their order alone. So one thread
    begins all of them: each sum's last one before the next sum's first. It does not wait for that.
    """

    def __init__(self, peers: Starter, name: str) -> None:
        """``name`` is the group's, for messages."""
        self._peers, self._name = peers, name
        self._place: Place | None = None
        self._lock = threading.Lock()
        self._closed: Exception | None = None
        self._to_begin: queue.SimpleQueue[tuple[GlooSum, Exchange] | None] = queue.SimpleQueue()
        self._under_way: queue.SimpleQueue[_Begun | None] = queue.SimpleQueue()
        self._unended: set[GlooSum] = set()
        self._threads = [
            threading.Thread(target=run, name=f"ina-gloo-{name}", daemon=True)
            for run in (self._begin_all, self._finish_all)
        ]
        for thread in self._threads:
            thread.start()

    def sum_as(self, place: Place) -> None:
        """Sums that are started from now on have the bits of the job in which this is the place.

        Call it before the first one; the same on all ranks but for the rank.
        """
        self._place = place

    def start(self, one: GlooSum) -> None:
        """Start a sum, which ends later, in another thread, unless this is closed.

        All ranks must start the same ones in the same order. ``one.number`` is known.
        """
        exchange: Exchange
        try:
            exchange = self._exchange(one)
        except Exception as error:  # nobody else would end what waits
            exchange = Unmade(error)
        self._start(one, exchange)

    def start_least(self, one: GlooSum) -> None:
        """As :meth:`start`, the least of all ranks' int64 in place of the sum."""
        self._start(one, Least(one.source))

    def _exchange(self, one: GlooSum) -> Exchange:
        assert self._place is not None, "the network was lost"
        what, place = one.what, self._place
        packed = one.source
        if one.spans is None:
            packed = pack(what, place, one.source, one.target)
        exchange: Exchange
        if what.value_type == ValueType.BYTES:
            exchange = Union(packed)
        elif what.value_type == ValueType.INT32:
            exchange = IntegerSum(packed, Reduction(what.op), place.world_size)
        else:
            exchange = FloatSum(packed, WordSum(what, place, one.number, one.spans))
        if packed is one.source:
            return exchange
        return Delivered(exchange, lambda: unpack(what, place, packed, one.target))

    def _start(self, one: GlooSum, exchange: Exchange) -> None:
        with self._lock:
            closed = self._closed
            if closed is None:
                self._unended.add(one)
                self._to_begin.put((one, exchange))
        if closed is not None:
            one.end(closed)

    def close(self, error: InaError) -> None:
        """End what is under way with ``error``, and what is started later; idempotent."""
        with self._lock:
            if self._closed is not None:
                return
            self._closed = error
            unended, self._unended = self._unended, set()
        self._to_begin.put(None)
        for one in unended:
            one.end(error)
        if not unended and threading.current_thread() not in self._threads:
            for thread in self._threads:
                thread.join(_END_TIMEOUT_S)

    def _begin_all(self) -> None:
        failed: Exception | None = None
        while (entry := self._to_begin.get()) is not None:
            one, exchange = entry
            # After a failure others may have begun more, or less: Gloo would add what does not
            # belong together.
            if failed is None:
                try:
                    self._check()
                    exchange.begin(self._peers, self._check)
                except Exception as error:  # Gloo's are RuntimeError; a waiter must hear of any
                    failed = error
            self._under_way.put(_Begun(one, exchange, failed))
        self._under_way.put(None)

    def _finish_all(self) -> None:
        while (begun := self._under_way.get()) is not None:
            failure: Exception | None = None
            try:
                if begun.failed is not None:
                    raise begun.failed
                begun.exchange.finish(self._check)
            except Exception as error:
                failure = self._failed(error)
            with self._lock:
                self._unended.discard(begun.one)
            begun.one.end(failure)

    def _check(self) -> None:
        """Raises why this was closed: all sums have ended with it, and memory is the callers'."""
        with self._lock:
            closed = self._closed
        if closed is not None:
            raise closed

    def _failed(self, error: Exception) -> FallbackError:
        said = " ".join(str(error).split())
        return FallbackError(
            f"group {self._name}: a collective over Gloo failed, after the switch was lost: {said}"
        )


@dataclass(frozen=True)
class _Begun:
    one: GlooSum
    exchange: Exchange
    failed: Exception | None
    """Why it was not begun."""
