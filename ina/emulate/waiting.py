"""Says for which processes a wait goes on, once others of their kind have ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

_log = logging.getLogger(__name__)

FIRST_S = 5.0
"""After the first process has ended. Each word comes after twice as long as the one before."""
LONGEST_S = 60.0


class Waiting:
    """Of one group of processes that end at about the same time when all goes well."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since_s: float | None = None
        self._next_s = 0.0
        self._pause_s = FIRST_S

    def look(self, ended: Sequence[str], running: Sequence[str]) -> None:
        """To be called again and again; logs a warning when it is time for one."""
        if not (ended and running):
            self._since_s, self._pause_s = None, FIRST_S
            return
        now_s = self._clock()
        if self._since_s is None:
            self._since_s, self._next_s = now_s, now_s + self._pause_s
        if now_s < self._next_s:
            return
        _log.warning(
            "waiting for %s to end: %s ended %.0f s ago",
            *(", ".join(running), ", ".join(ended), now_s - self._since_s),
        )
        self._pause_s = min(2 * self._pause_s, LONGEST_S)
        self._next_s = now_s + self._pause_s
