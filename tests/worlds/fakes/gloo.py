"""Gloo with one rank, whose collectives end when the test says so."""

from __future__ import annotations

import threading

import torch
from torch.distributed import Work

LIMIT_S = 30.0


class HeldWork(Work):
    """Ends once it is let go, with an error if that is what it is let go with."""

    def __init__(self) -> None:
        super().__init__()
        self._let_go = threading.Event()
        self._error: RuntimeError | None = None

    def let_go(self, error: RuntimeError | None = None) -> None:
        self._error = error
        self._let_go.set()

    def wait(self, timeout: object = None) -> bool:
        assert self._let_go.wait(LIMIT_S)
        if self._error is not None:
            raise self._error
        return True


class HeldGloo:
    """Writes down what was started, with how many elements, in order."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.works: list[HeldWork] = []
        self._changed = threading.Condition()

    def start_sum(self, tensor: torch.Tensor) -> Work:
        return self._start("sum", tensor)

    def start_least(self, tensor: torch.Tensor) -> Work:
        return self._start("least", tensor)

    def start_most(self, tensor: torch.Tensor) -> Work:
        return self._start("most", tensor)

    def _start(self, what: str, tensor: torch.Tensor) -> Work:
        work = HeldWork()
        with self._changed:
            self.calls.append(f"{what} of {tensor.numel()}")
            self.works.append(work)
            self._changed.notify_all()
        return work

    def wait_for(self, calls: int) -> list[str]:
        """Those made, once there are so many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.calls) >= calls, LIMIT_S)
            return list(self.calls)
