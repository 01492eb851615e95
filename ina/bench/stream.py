"""Sums without a pause, until rank 0 has seen enough."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ina.host import Session
from ina.host.handle import Handle

_GO_ON = 1
_SPARSE = 64


class Stream:
    """Sums of one rank, ``depth`` in flight at a time, until the job's rank 0 ends them."""

    def __init__(
        self, elems: int, rank: int, workers: int, depth: int = 1, full_check_every: int = 1
    ) -> None:
        """``full_check_every``: of so many sums one is checked value by value, and of the others a
        value in ``_SPARSE``: to look at all takes a core of whoever has eight ranks on two."""
        self._rank = rank
        self._full_check_every = full_check_every
        numbers = np.arange(elems, dtype=np.int32)
        self._wanted = numbers * workers + workers * (workers - 1) // 2
        self._owns = [numbers + rank for _ in range(depth)]
        self._results = [np.empty(elems, np.int32) for _ in range(depth)]
        self.sums: list[tuple[float, float]] = []
        """When each began, and was done, by the monotonic clock."""
        self.wrong = 0

    def run(self, session: Session, goes_on: Callable[[], bool]) -> None:
        """``goes_on`` is asked on rank 0 before each sum; the others learn it from that.

        Whoever sees the last one has submitted those that may be in flight behind it, and no more.
        """
        depth = len(self._owns)
        flying = deque(self._submit(session, at, goes_on) for at in range(depth))
        at, going = 0, True
        while flying:
            began_s, handle = flying.popleft()
            result = handle.wait()
            self.sums.append((began_s, time.monotonic()))
            going = going and bool(result[0] == _GO_ON)
            step = _SPARSE if len(self.sums) % self._full_check_every else 1
            self.wrong += not np.array_equal(result[1::step], self._wanted[1::step])
            if going:
                flying.append(self._submit(session, at, goes_on))
            at = (at + 1) % depth

    def _submit(
        self, session: Session, at: int, goes_on: Callable[[], bool]
    ) -> tuple[float, Handle[npt.NDArray[np.int32]]]:
        own = self._owns[at]
        own[0] = _GO_ON if self._rank == 0 and goes_on() else 0
        began_s = time.monotonic()
        return began_s, session.all_reduce(own, out=self._results[at], async_op=True)
