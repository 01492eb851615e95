"""Handles of operations that begin when it is their turn, and of sparse sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ina.host.handle import Handle
from ina.host.sparse import BlockSum
from ina.host.turns import Later

T = TypeVar("T")

WaitError = Callable[[float], Exception]
"""What to raise after so many seconds."""


class DeferredHandle(Handle[T]):
    """A reduction that was submitted behind a sparse sum whose counters were under way."""

    def __init__(self, later: Later[T], keep: object, wait_error: WaitError) -> None:
        self._later = later
        self._keep = keep
        self._wait_error = wait_error

    def wait(self, timeout_s: float | None = None) -> T:
        """See Handle."""
        if not self._later.has_ended(timeout_s):
            assert timeout_s is not None
            raise self._wait_error(timeout_s)
        self._keep = None
        return self._later.wait()

    def done(self) -> bool:
        """See Handle."""
        return self._later.done()

    def exception(self) -> Exception | None:
        """See Handle."""
        return self._later.exception()

    def add_done_callback(self, function: Callable[[Handle[T]], object]) -> None:
        """See Handle."""
        self._later.add_done_callback(lambda _: function(self))


class BlockHandle(DeferredHandle[T]):
    """One asynchronous sparse sum, or several that were given together."""

    def __init__(
        self, sums: Sequence[BlockSum[Any]], later: Later[T], wait_error: WaitError
    ) -> None:
        super().__init__(later, None, wait_error)
        self._sums = sums

    @property
    def blocks(self) -> int:
        """Of the arrays."""
        return sum(one.blocks for one in self._sums)

    @property
    def own(self) -> int:
        """Of those: not zero on this rank."""
        return sum(one.own for one in self._sums)

    @property
    def union(self) -> int | None:
        """Of those: not zero on some rank, the same on all; None: not known yet."""
        found = [one.union for one in self._sums]
        return None if None in found else sum(one for one in found if one is not None)
