"""Timeouts of single operations, shorter or longer than what the session itself sees to."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable

_END_TIMEOUT_S = 5.0


class Deadlines:
    """Calls functions when their time has come, from one thread, started with the first."""

    def __init__(self, name: str) -> None:
        """``name`` is the thread's."""
        self._name = name
        self._changed = threading.Condition()
        self._number = itertools.count()  # of equal deadlines, the first comes first
        self._due: list[tuple[float, int, Callable[[], bool], Callable[[], None]]] = []
        self._closed = False
        self._thread: threading.Thread | None = None

    def after(
        self, seconds: float, is_over: Callable[[], bool], function: Callable[[], None]
    ) -> None:
        """Call ``function`` once so much time has passed, unless ``is_over()`` by then."""
        with self._changed:
            if self._closed:
                return
            while self._due and self._due[0][2]():  # most end long before; do not collect them
                heapq.heappop(self._due)
            entry = (time.monotonic() + seconds, next(self._number), is_over, function)
            heapq.heappush(self._due, entry)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        """Call nothing more. Idempotent; may be called by one of the functions."""
        with self._changed:
            self._closed = True
            self._due.clear()
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_END_TIMEOUT_S)

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                left_s = self._due[0][0] - time.monotonic() if self._due else None
                if left_s is None or left_s > 0:
                    self._changed.wait(left_s)
                    continue
                _, _, is_over, function = heapq.heappop(self._due)
            if not is_over():
                function()
