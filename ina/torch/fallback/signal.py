"""How ranks tell each other without the switch: that it is lost, that they need it no more."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from torch._C._distributed_c10d import PrefixStore, Store

_log = logging.getLogger("ina.torch")

_LOST, _DONE = "lost", "done"
POLL_S = 0.2


def own_connection(store: Store, prefix: str) -> Store:
    """The part of a group's store, where it offers that by a connection that nobody else blocks."""
    prefixed = PrefixStore(prefix, store)
    clone: Callable[[], Store] | None = getattr(prefixed, "clone", None)
    return clone() if clone is not None else prefixed


class LossSignal:
    """Two keys of an incarnation of the job: why its switch is lost, how many ranks are done."""

    def __init__(self, store: Store, size: int) -> None:
        """``store``: used by threads of their own, so it is best a connection of its own."""
        self._store = store
        self._size = size
        self._deaf = False

    def tell(self, reason: str) -> None:
        """Say that the switch is lost."""
        try:
            self._store.set(_LOST, reason)
        except RuntimeError as error:  # the store's process is gone; others have the controller
            self._lose(error)

    def heard(self) -> str | None:
        """Why a rank gave the switch up, or None while none has."""
        if self._deaf:
            return None
        try:
            return self._store.get(_LOST).decode() if self._store.check([_LOST]) else None
        except RuntimeError as error:
            self._lose(error)
            return None

    def hear(self, timeout_s: float) -> str | None:
        """Like :meth:`heard`, but wait for it."""
        deadline = time.monotonic() + timeout_s
        while (reason := self.heard()) is None and time.monotonic() < deadline:
            time.sleep(POLL_S)
        return reason

    def done(self, timeout_s: float, is_futile: Callable[[], bool]) -> None:
        """Say that this rank needs no result any more; wait until all say so or the switch is lost.

        A rank that lacks the last result of a sum can get it only from one that is still there.
        """
        deadline = time.monotonic() + timeout_s
        try:
            self._store.add(_DONE, 1)
            while self._store.add(_DONE, 0) < self._size and self.heard() is None:
                if time.monotonic() >= deadline or is_futile():
                    break
                time.sleep(POLL_S / 10)
        except RuntimeError:
            return  # the store went with a rank that was the last to be done

    def _lose(self, error: RuntimeError) -> None:
        self._deaf = True
        _log.warning("ina: the group's store is gone: %s", " ".join(str(error).split()))
