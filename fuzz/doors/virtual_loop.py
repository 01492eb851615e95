"""An event loop whose time passes when nothing is ready: a wait of an hour takes none."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any


class _Idle(selectors.SelectSelector):
    """Instead of waiting it lets the loop's time pass."""

    passed_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        """What is ready now."""
        if timeout is None:
            raise RuntimeError("nothing will ever happen")
        self.passed_s += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """``time()`` begins at :data:`BEGIN_S`, and moves only while everybody waits."""

    BEGIN_S = 1000.0

    def __init__(self) -> None:
        self._idle = _Idle()
        super().__init__(self._idle)

    def time(self) -> float:
        """In seconds."""
        return self.BEGIN_S + self._idle.passed_s
