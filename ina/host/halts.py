"""Waits for results that are no sums, in a session that may be finished without the switch."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ina.extension.host import Transport

_POLL_NS = 500_000_000
_JOIN_S = 5.0


class HaltWatch:
    """A thread that calls ``on_halt`` once, when the transport has halted."""

    def __init__(self, transport: Transport, on_halt: Callable[[], object], name: str) -> None:
        self._transport, self._on_halt = transport, on_halt
        self._thread = threading.Thread(target=self._watch, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread. Call after the transport was closed."""
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_S)

    def _watch(self) -> None:
        while (halted := self._transport.wait_halted(_POLL_NS)) is None:
            pass
        if halted:
            self._on_halt()
