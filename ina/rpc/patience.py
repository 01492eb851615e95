"""Says that somebody is waited for, before whoever waits takes the program for dead."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType

FIRST_S = 5.0
"""A controller that answers, answers sooner."""
_GROWTH = 3.0


class Patience:
    """While its ``with`` block lasts: warns after ``first_s``, and again at growing intervals.

    Each line says who is waited for, why not more is known, and for how long yet. When
    :meth:`heard` ends the wait and anything was said, another line says so, at the same level.
    """

    def __init__(
        self, log: logging.Logger, whom: str, timeout_s: float, *, first_s: float = FIRST_S
    ) -> None:
        """``whom``: "job 'x' rank 0: controller 10.0.0.1:17700". ``timeout_s``: of the whole wait;
        below ``first_s`` nothing is said."""
        self.whom = whom
        """May change, where another is asked."""
        self.why = ""
        """What was heard last, if anything was."""
        self._log = log
        self._end_s = time.monotonic() + timeout_s
        self._first_s = first_s
        self._ended = threading.Event()
        self._began_s = 0.0
        self._has_spoken = False
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Patience:
        self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def heard(self) -> None:
        """It has answered: nothing more is said of it, unless it is :meth:`missed` again."""
        self._stop()
        if self._has_spoken:
            self._has_spoken = False
            waited_s = time.monotonic() - self._began_s
            self._log.warning("%s is back, after %.0f s", self.whom, waited_s)

    def missed(self, why: str) -> None:
        """It has not answered, because of ``why``. Where it had before, a new wait begins."""
        self.why = why
        if self._ended.is_set():
            self._start()

    def _start(self) -> None:
        self._ended.clear()
        self._began_s = time.monotonic()
        if self._end_s - self._began_s > self._first_s:
            self._thread = threading.Thread(target=self._run, name="ina-patience", daemon=True)
            self._thread.start()

    def _stop(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        pause_s = self._first_s
        while not self._ended.wait(pause_s):
            now_s = time.monotonic()
            why = f" ({self.why})" if self.why else ""
            self._log.warning(
                "%s does not answer%s: tried for %.0f s, trying again for another %.0f s",
                *(self.whom, why, now_s - self._began_s, max(0.0, self._end_s - now_s)),
            )
            self._has_spoken = True
            pause_s *= _GROWTH
