"""What is open when the program ends: one that ends without closing still leaves its jobs."""

from __future__ import annotations

import atexit
import weakref
from typing import Protocol


class Closable(Protocol):
    """A session."""

    def close(self) -> None:
        """It may be called again."""


_open: weakref.WeakSet[Closable] = weakref.WeakSet()


def close(session: Closable) -> None:
    """When the program ends, unless it was closed by then, or nobody has it any more."""
    _open.add(session)


def closed(session: Closable) -> None:
    """It was."""
    _open.discard(session)


@atexit.register
def _close_all() -> None:
    for session in list(_open):
        session.close()
