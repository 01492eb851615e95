"""A session for one worker whose operations complete when, and as, the test says."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ina.protocol.collective import Collective, CollectiveKind
from ina.protocol.spec import ValueType


class ManualHandle:
    """Stands for ``ina.host.Handle``; ``finish`` plays the completion thread."""

    def __init__(self, pointer: int, n_bytes: int, keep: object) -> None:
        self.pointer, self.n_bytes, self._keep = pointer, n_bytes, keep
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[ManualHandle], None]] = []
        self._ended = threading.Event()
        self.interrupt = False
        """Ctrl-C in the next wait."""

    @property
    def callbacks(self) -> int:
        return len(self._callbacks)

    def add_done_callback(self, fn: Callable[[ManualHandle], None]) -> None:
        if self._ended.is_set():
            fn(self)
        else:
            self._callbacks.append(fn)

    def done(self) -> bool:
        return self._ended.is_set()

    def wait(self) -> None:
        if self.interrupt:
            self.interrupt = False
            raise KeyboardInterrupt
        assert self._ended.wait(30)
        if self._error is not None:
            raise self._error

    def finish(self, result: bytes = b"", error: BaseException | None = None) -> None:
        """Write ``result`` where the session was told to, and complete from another thread."""
        if self._ended.is_set():
            return
        assert len(result) in (0, self.n_bytes)
        ctypes.memmove(self.pointer, result, len(result))
        self._error, self._keep = error, None
        self._ended.set()
        thread = threading.Thread(target=lambda: [fn(self) for fn in self._callbacks])
        thread.start()
        thread.join(10)
        assert not thread.is_alive()


@dataclass
class ManualStats:
    packets_sent: int = 0


@dataclass(frozen=True)
class ManualTicket:
    has_shapes: bool = False  # what is moved goes beside it, and needs no test to say when


@dataclass
class ManualSession:
    """Stands for ``ina.host.Session``."""

    ticket: ManualTicket = ManualTicket()

    handles: list[ManualHandle] = field(default_factory=list)
    ops: list[tuple[int, int]] = field(default_factory=list)
    closed: bool = False
    fail_at: int | None = None
    path: str = "by hand"

    def submit(
        self, pointer_in: int, pointer_out: int, what: Collective, *, keep: object
    ) -> ManualHandle:
        assert pointer_in == pointer_out or what.kind != CollectiveKind.ALL_REDUCE
        if self.fail_at == len(self.handles):
            raise RuntimeError("cannot start")
        bytes_each = {0: 4, 1: 4, 2: 2, 3: 2, ValueType.BYTES: 1}[what.value_type]
        handle = ManualHandle(pointer_out, what.elems * bytes_each, keep)
        self.handles.append(handle)
        self.ops.append((what.value_type, what.op))
        return handle

    def stats(self) -> Any:
        return ManualStats(packets_sent=len(self.handles))

    def fail(self, error: Exception) -> None:
        """Like a session: what is under way ends, what comes fails."""
        for handle in self.handles:
            handle.finish(error=error)

    def close(self) -> None:
        self.closed = True
