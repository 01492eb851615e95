"""The completion thread: runs done-callbacks. Started with the first callback of a session."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from ina._native.host import Operation, UdpTransport

_log = logging.getLogger(__name__)

_POLL_NS = 500_000_000
_JOIN_S = 5.0


class Watcher:
    """Runs functions when operations end, in one thread of its own."""

    def __init__(self, transport: UdpTransport, name: str) -> None:
        self._transport = transport
        self._lock = threading.Lock()
        self._functions: dict[int, list[Callable[[], object]]] = {}
        self._closing = False
        self._stopped = False  # guarded by the lock: from then on nobody reads reports
        self._thread = threading.Thread(target=self._watch, name=name, daemon=True)
        self._thread.start()

    def add(self, operation: Operation, function: Callable[[], object]) -> None:
        """Run `function` once when the operation has ended, or soon if it has already.

        Once the session is closed every operation has ended, and the caller's thread runs it.
        """
        with self._lock:
            stopped = self._stopped
            if not stopped:
                self._functions.setdefault(operation.id, []).append(function)
        if stopped:
            _run(operation.id, function)
        else:
            operation.watch()

    def close(self) -> None:
        """Run what is due, then end the thread. Call after the transport was closed."""
        self._closing = True
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_S)

    def _watch(self) -> None:
        while True:
            closing = self._closing
            ended = self._transport.wait_watched(_POLL_NS)
            for operation_id in ended:
                with self._lock:
                    functions = self._functions.pop(operation_id, [])
                for function in functions:
                    _run(operation_id, function)
            if closing and not ended:
                break
        with self._lock:
            self._stopped = True
            left, self._functions = self._functions, {}
        for operation_id, functions in left.items():
            for function in functions:
                _run(operation_id, function)


def _run(operation_id: int, function: Callable[[], object]) -> None:
    try:
        function()
    except Exception:
        _log.exception("a done-callback of operation %d failed", operation_id)
