"""A reduction that is under way."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from ina.extension.host import Operation, OperationState

T = TypeVar("T")

# Waits return to Python this often, so that Ctrl-C works.
_WAIT_SLICE_S = 0.2


class _Session(Protocol):
    """What a handle asks of the session that made it."""

    def _wait_error(self, timeout_s: float) -> Exception: ...

    def _error_of(self, operation: Operation) -> Exception | None: ...

    def _watch(self, operation: Operation, function: Callable[[], object]) -> None: ...

    def _forget(self, operation: Operation) -> None: ...


class Handle(Generic[T]):
    """One asynchronous reduction. The tensor's memory must not be touched before it is done."""

    def __init__(self, session: _Session, operation: Operation, result: T, keep: object) -> None:
        self._session = session
        self._operation = operation
        self._result = result
        self._keep: object = keep  # the input, which the session thread reads

    def wait(self, timeout_s: float | None = None) -> T:
        """Wait for the result and return it (None for raw memory).

        Without `timeout_s` the session's own deadline bounds the wait. Raises OperationTimeoutError
        (after `timeout_s` the reduction is still under way and can be waited for again),
        SessionClosedError, WindowError, or JobFailedError: why the job cannot go on.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_s = _WAIT_SLICE_S if deadline is None else deadline - time.monotonic()
            if self._operation.wait(int(max(min(left_s, _WAIT_SLICE_S), 0.0) * 1e9)):
                break
            if deadline is not None and left_s <= 0:
                assert timeout_s is not None
                raise self._session._wait_error(timeout_s)
        self._release()
        error = self.exception()
        if error is not None:
            raise error
        return self._result

    def done(self) -> bool:
        """Return whether it has ended, with a result or with an error."""
        return self._operation.state != OperationState.PENDING

    def exception(self) -> Exception | None:
        """Return the error it ended with, or None: it has a result, or has not ended."""
        return self._session._error_of(self._operation)

    def add_done_callback(self, function: Callable[[Handle[T]], object]) -> None:
        """Call `function(handle)` from the session's completion thread once this has ended.

        Also when it has ended already. Functions of one handle run in the order they were added;
        an exception in one is logged and goes no further.
        """
        self._session._watch(self._operation, lambda: function(self))

    def _release(self) -> None:
        self._keep = None
        self._session._forget(self._operation)
