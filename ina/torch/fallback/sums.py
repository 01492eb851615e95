"""All-reduces over Gloo with the network's meaning of AVG and its rounding of small floats."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

import torch
from torch.distributed import Work

from ina.errors import InaError
from ina.protocol.coding import WHOLE, Coding
from ina.protocol.collective import Reduction
from ina.torch.dense import memory_of, writing
from ina.torch.errors import FallbackError
from ina.torch.fallback.peers import GlooPeers

_log = logging.getLogger("ina.torch")

_END_TIMEOUT_S = 5.0


class GlooSum:
    """One all-reduce, for whoever waits for it; stands in for ``ina.host.Handle``.

    Over Gloo, or over the network if the group goes back to it before it is its turn.
    """

    def __init__(
        self, tensor: torch.Tensor, op: Reduction = Reduction.SUM, coding: Coding = WHOLE
    ) -> None:
        """``tensor``: contiguous, of any shape; summed in place. ``coding``: over the network."""
        self.tensor, self.op, self.coding = tensor, op, coding
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
                _log.exception("ina: a callback of an all_reduce over Gloo failed")


class GlooSums:
    """Starts sums at once and ends them in order, in a thread of its own."""

    def __init__(self, peers: GlooPeers, workers: int, name: str) -> None:
        """``name`` is the group's, for messages."""
        self._peers, self._workers, self._name = peers, workers, name
        self._lock = threading.Lock()
        self._closed: Exception | None = None
        self._under_way: queue.SimpleQueue[
            tuple[GlooSum, torch.Tensor, Work | RuntimeError] | None
        ] = queue.SimpleQueue()
        self._unended: set[GlooSum] = set()
        self._thread = threading.Thread(
            target=self._finish_all, name=f"ina-gloo-{name}", daemon=True
        )
        self._thread.start()

    def start(self, one: GlooSum) -> None:
        """Start a sum, which ends later, in another thread, unless this is closed.

        All ranks must start the same ones in the same order.
        """
        self._start(one, lambda: self._begin(one.tensor))

    def start_least(self, one: GlooSum) -> None:
        """As :meth:`start`, the least of all ranks' int64 in place of the sum."""
        self._start(one, lambda: (one.tensor, self._tried(self._peers.start_least, one.tensor)))

    def _start(
        self, one: GlooSum, begin: Callable[[], tuple[torch.Tensor, Work | RuntimeError]]
    ) -> None:
        with self._lock:
            closed = self._closed
            if closed is None:
                self._unended.add(one)
                self._under_way.put((one, *begin()))
        if closed is not None:
            one.end(closed)

    def _begin(self, tensor: torch.Tensor) -> tuple[torch.Tensor, Work | RuntimeError]:
        # The network rounds the sum of small floats once; Gloo would round each addition.
        wide = tensor.detach().float() if tensor.dtype in _SMALL_FLOATS else memory_of(tensor)
        return wide, self._tried(self._peers.start_sum, wide)

    def _tried(
        self, start: Callable[[torch.Tensor], Work], tensor: torch.Tensor
    ) -> Work | RuntimeError:
        try:
            return start(tensor)
        except RuntimeError as error:
            return error

    def close(self, error: InaError) -> None:
        """End what is under way with ``error``, and what is started later; idempotent."""
        with self._lock:
            if self._closed is not None:
                return
            self._closed = error
            unended, self._unended = self._unended, set()
        self._under_way.put(None)
        for one in unended:
            one.end(error)
        if not unended and threading.current_thread() is not self._thread:
            self._thread.join(_END_TIMEOUT_S)

    def _finish_all(self) -> None:
        while (entry := self._under_way.get()) is not None:
            one, wide, work = entry
            failure: Exception | None = None
            try:
                if isinstance(work, RuntimeError):
                    raise work
                work.wait()
                self._write(one, wide)
            except Exception as error:  # Gloo's are RuntimeError; a waiter must hear of any
                failure = self._failed(error)
            with self._lock:
                self._unended.discard(one)
            one.end(failure)

    def _write(self, one: GlooSum, wide: torch.Tensor) -> None:
        with writing(one.tensor):
            is_average = one.op is Reduction.AVERAGE
            if is_average and wide.is_floating_point():
                wide.mul_(torch.tensor(1.0, dtype=torch.float32) / self._workers)
            elif is_average:
                wide.div_(self._workers, rounding_mode="trunc")
            if wide.dtype != one.tensor.dtype:
                memory_of(one.tensor).copy_(wide)

    def _failed(self, error: Exception) -> FallbackError:
        said = " ".join(str(error).split())
        return FallbackError(
            f"group {self._name}: an all_reduce over Gloo failed, after the switch was lost: {said}"
        )


_SMALL_FLOATS = (torch.float16, torch.bfloat16)
