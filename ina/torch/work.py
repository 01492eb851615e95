"""The ``Work`` of a collective on its way through the network."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import torch
from torch.distributed import Work
from torch.futures import Future

from ina.host.errors import OperationTimeoutError
from ina.protocol.collective import Collective
from ina.torch.dense import writing
from ina.torch.errors import WorkTimeoutError
from ina.torch.parts import SparsePart
from ina.torch.worker import Sum


@dataclass(frozen=True)
class Piece:
    """One operation of the session's, and the tensor that takes its result.

    ``buffer`` is the contiguous memory that the session reads, and writes to without a ``target``:
    the tensor itself, or a copy of it, or what :mod:`ina.torch.cuda.staging` makes of it.
    ``deliver`` takes the result to the tensor, where it does not come there.
    """

    tensor: torch.Tensor
    buffer: torch.Tensor
    deliver: Callable[[], object] | None = None
    part: SparsePart | None = None
    """What of it is sent, where that is not all; then the buffer says its type alone."""
    what: Collective | None = None
    """None: an all-reduce of the buffer."""
    target: torch.Tensor | None = None
    """Contiguous memory that the result comes to; None: the buffer."""
    others: Sequence[torch.Tensor] = ()
    """What takes the result beside the tensor: of a list, those behind the first."""


class NetworkWork(Work):
    """Completes when all its operations have.

    Who waits for one result that comes where it belongs waits for the operation itself: a thread
    that hands it on would have to be woken first. In every other case, and once somebody asks for
    the future, the session's completion thread completes the work; callbacks that are chained to
    the future run on it, and one may wait for a collective that it started itself. Tensors live
    until the session is done with their memory, whether or not the caller keeps the work.
    """

    def __init__(self, what: Callable[[], str], pieces: Sequence[Piece]) -> None:
        """``what()`` names the operation in messages; call :meth:`watch` once for each piece."""
        super().__init__()
        self._what = what
        self._pieces = tuple(pieces)
        self._lock = threading.Lock()
        self._remaining = len(self._pieces)
        self._error: BaseException | None = None
        self._is_finished = False
        self._finished: threading.Event | None = None
        """For who waits while others complete it."""
        self._alone: Sum | None = None
        """The only operation, as long as nobody has been asked to tell of its end."""
        self._trigger: Future[None] | None = None
        self._future: Future[list[torch.Tensor]] | None = None
        if self._remaining == 0:
            self._finish()

    def __repr__(self) -> str:
        """Name the operation, and say how it is; changes nothing."""
        alone = self._alone
        if not self._is_finished:
            state = "ended" if alone is not None and alone.done() else "under way"
        else:
            state = "done" if self._error is None else f"failed: {self._error}"
        return f"<{self._what()}: {state}>"

    def watch(self, handle: Sum) -> None:
        """Count the operation of ``handle`` as one of the pieces."""
        if len(self._pieces) == 1 and self._pieces[0].deliver is None:
            self._alone = handle
        else:
            handle.add_done_callback(self._piece_done)

    def _take_alone(self) -> Sum | None:
        """The only operation, for one caller, who then sees to :meth:`_piece_done`."""
        with self._lock:
            handle, self._alone = self._alone, None
        return handle

    def _hand_over(self) -> None:
        """From now on the completion thread completes the work."""
        handle = self._take_alone()
        if handle is not None:
            handle.add_done_callback(self._piece_done)

    def _look(self) -> None:
        """Complete the work if its operation has ended and nobody has been told."""
        handle = self._alone
        if handle is not None and handle.done() and self._take_alone() is not None:
            self._piece_done(handle)

    def fail(self, error: BaseException, pieces: int) -> None:
        """Record that ``pieces`` operations could not even start."""
        self._count(error, pieces)

    def _piece_done(self, handle: Sum) -> None:
        error: Exception | None = None
        try:
            handle.wait()  # it has ended; this lets the session forget the memory
        except Exception as failure:
            error = failure
        self._count(error)

    def _count(self, error: BaseException | None, pieces: int = 1) -> None:
        with self._lock:
            self._error = self._error or error
            self._remaining -= pieces
            last = self._remaining == 0
        if last:
            self._finish()

    def _finish(self) -> None:
        if self._error is None:
            try:
                self._write_back()
            except Exception as failure:  # whatever torch says: a waiter must hear it
                self._error = failure
        with self._lock:
            self._is_finished = True
            finished, trigger = self._finished, self._trigger
        if finished is not None:
            finished.set()
        if trigger is not None:
            trigger.set_result(None)

    def _write_back(self) -> None:
        """Take the results that are not there yet to where they belong."""
        for piece in self._pieces:
            if piece.deliver is not None:
                with writing(piece.tensor):
                    piece.deliver()

    def _outcome(self, _: Future[None]) -> list[torch.Tensor]:
        if self._error is not None:
            raise self._error
        return self.result()

    def timeout_error(self, seconds: float) -> OperationTimeoutError:
        """What ends it, and the group, when it has not completed in so many seconds."""
        return OperationTimeoutError(f"{self._what()}: not complete {seconds:g} s after its start")

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Wait for the result; a timeout of zero means the group's own.

        Raises :class:`WorkTimeoutError` when ``timeout`` has passed (the operation goes on), and
        the operation's own error if it failed.
        """
        seconds = timeout.total_seconds()
        if seconds > 0:
            self._hand_over()
        else:
            self._wait_alone()
        if not self._is_finished and not self._has_finished(seconds if seconds > 0 else None):
            raise WorkTimeoutError(f"{self._what()}: not complete after {seconds:g} s")
        if self._error is not None:
            raise self._error
        return True

    def _has_finished(self, seconds: float | None) -> bool:
        with self._lock:
            if self._is_finished:
                return True
            finished = self._finished = self._finished or threading.Event()
        return finished.wait(seconds)

    def _wait_alone(self) -> None:
        handle = self._take_alone()
        if handle is None:
            return
        error: Exception | None = None
        try:
            handle.wait()
        except Exception as failure:
            error = failure
        except BaseException:  # Ctrl-C: others may go on waiting
            handle.add_done_callback(self._piece_done)
            raise
        self._count(error)

    def synchronize(self) -> None:
        """Same as :meth:`wait` without a timeout: CPU tensors have no stream."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether the result is there or the operation failed."""
        self._look()
        return self._is_finished

    def is_success(self) -> bool:
        """Whether the result is there."""
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        """The error of a failed operation; None while it runs and after success."""
        return self._error if self.is_completed() else None

    def result(self) -> list[torch.Tensor]:
        """The tensors that were passed in; they hold the result once the work is complete."""
        return [tensor for piece in self._pieces for tensor in (piece.tensor, *piece.others)]

    def get_future(self) -> Future[list[torch.Tensor]]:
        """A future of :meth:`result`; the same one at each call.

        A failed operation makes its ``wait`` raise a RuntimeError that holds the error's text: that
        is how an error passes through DDP's C++ (``Future.set_exception`` would not reach it).
        """
        self._hand_over()
        with self._lock:
            if self._future is not None:
                return self._future
            trigger: Future[None] = Future()
            self._trigger = trigger
            self._future = trigger.then(self._outcome)
            is_finished = self._is_finished
        if is_finished:
            trigger.set_result(None)
        return self._future
