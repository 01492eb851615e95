"""The completion thread: runs done-callbacks. Started with the first callback of a session.

A callback may start another operation and wait for it, as PyTorch's PowerSGD hook does. The thread
that it runs in then cannot complete that operation, so another one takes over the watch; the first
ends with its callback. One thread at a time watches.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from ina.extension.host import Operation, Transport

_log = logging.getLogger(__name__)

_POLL_NS = 500_000_000
_JOIN_S = 5.0


class Watcher:
    """Runs functions when operations end, in a thread of its own."""

    def __init__(self, transport: Transport, name: str) -> None:
        self._transport = transport
        self._lock = threading.Lock()
        self._functions: dict[int, list[Callable[[], object]]] = {}
        self._due: deque[int] = deque()  # operations that have ended; their functions are to run
        self._closing = False
        self._stopped = False  # guarded by the lock: from then on nobody reads reports
        self._name = name
        self._thread = self._new_thread()
        self._thread.start()

    def add(self, operation: Operation, function: Callable[[], object]) -> None:
        """Run `function` once when the operation has ended, or soon if it has already.

        Once the session is closed every operation has ended, and the caller's thread runs it.
        """
        with self._lock:
            stopped = self._stopped
            if not stopped:
                self._functions.setdefault(operation.id, []).append(function)
                if threading.current_thread() is self._thread:  # its callback may wait for this
                    self._thread = self._new_thread()
                    self._thread.start()
        if stopped:
            _run(operation.id, function)
        else:
            operation.watch()

    def close(self) -> None:
        """Run what is due, then end the thread. Call after the transport was closed."""
        self._closing = True
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_S)

    def _new_thread(self) -> threading.Thread:
        return threading.Thread(target=self._watch, name=self._name, daemon=True)

    def _watch(self) -> None:
        while True:
            closing = self._closing
            if not self._run_due():
                return
            ended = self._transport.wait_watched(_POLL_NS)
            self._due.extend(ended)
            if closing and not ended:
                break
        with self._lock:
            self._stopped = True
            left, self._functions = self._functions, {}
        for operation_id, functions in left.items():
            for function in functions:
                _run(operation_id, function)

    def _run_due(self) -> bool:
        """Run the functions of what has ended; return whether this thread is to go on watching."""
        this = threading.current_thread()
        while True:
            with self._lock:
                if self._thread is not this:
                    return False
                if not self._due:
                    return True
                operation_id = self._due.popleft()
                functions = self._functions.pop(operation_id, [])
            for function in functions:
                _run(operation_id, function)


def _run(operation_id: int, function: Callable[[], object]) -> None:
    try:
        function()
    except Exception:
        _log.exception("a done-callback of operation %d failed", operation_id)
