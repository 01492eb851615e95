"""Ends, from another thread, a join that is under way."""

from __future__ import annotations

import threading
from typing import Any

import grpc

from ina.host.errors import SessionClosedError


class Stop:
    """Once it is set, a call through it ends with SessionClosedError, as all that come do."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_set = False
        self._call: Any = None

    def set(self) -> None:
        """Idempotent."""
        with self._lock:
            self._is_set = True
            call = self._call
        if call is not None:
            call.cancel()

    def run(self, method: Any, request: object, timeout_s: float) -> Any:
        """One call of a stub, one at a time; raises also what that raises."""
        with self._lock:
            if self._is_set:
                raise SessionClosedError("joining was given up")
            call = self._call = method.future(request, timeout=timeout_s)
        try:
            return call.result()
        except grpc.FutureCancelledError:
            raise SessionClosedError("joining was given up") from None
        finally:
            with self._lock:
                self._call = None
