"""The ``Work`` of an inner group whose results are copied to where the caller wants them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import Work
from torch.futures import Future


class CopiedWork(Work):
    """Completes once the results are there: never before, and with the error of either step.

    torch makes a Work of a Future too, but that one's ``wait`` swallows the future's error.
    """

    def __init__(
        self, inner: Work, deliver: Callable[[], object], results: list[torch.Tensor]
    ) -> None:
        """``deliver`` is called once, after ``inner`` has succeeded, in any thread."""
        super().__init__()
        self._inner, self._deliver, self._results = inner, deliver, results
        self._lock = threading.Lock()
        self._delivered = False
        self._future: Future[list[torch.Tensor]] | None
        try:
            self._future = inner.get_future().then(self._ended)
        except RuntimeError:  # Gloo's recv has none: it is received while somebody waits
            self._future = None

    def _ended(self, inner: Future[Any]) -> list[torch.Tensor]:
        inner.value()  # raises the operation's error
        self._deliver()
        return self._results

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Wait for the results; raises what the inner work raises, or why they were not copied."""
        self._inner.wait(timeout)
        if self._future is not None:
            self._future.wait()  # on a GPU: makes this stream wait for the copies
            return True
        with self._lock:
            if not self._delivered:
                self._deliver()
                self._delivered = True
        return True

    def synchronize(self) -> None:
        """Same as :meth:`wait` without a timeout."""
        self.wait()

    def is_completed(self) -> bool:
        """Whether the results are there or the operation failed."""
        return self._delivered if self._future is None else self._future.done()

    def is_success(self) -> bool:
        """Whether the results are there."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """The error of a failed operation; None while it runs and after success."""
        if not self.is_completed():
            return None
        try:
            self.wait()
        except Exception as error:
            return error
        return None

    def result(self) -> list[torch.Tensor]:
        """The caller's tensors that are written."""
        return self._results

    def get_future(self) -> Future[list[torch.Tensor]]:
        """A future of :meth:`result`; raises RuntimeError for ``recv``, as Gloo does."""
        return self._inner.get_future() if self._future is None else self._future

    def _source_rank(self) -> int:
        return self._inner._source_rank()

    def source_rank(self) -> int:
        """Of a ``recv`` from any rank: whose it was."""
        return self._inner.source_rank()
