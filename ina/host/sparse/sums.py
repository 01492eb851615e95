"""Sums of arrays of which most is zero: the ranks agree on what is not, and send that alone.

A sum is two operations: small counters say which blocks hold something on any rank, and then the
values of those are summed, in one piece. The second has its place in the order of operations from
the beginning (see :mod:`ina.host.turns`). Of several in a row the order is: counters of the first,
of the second, values of the first, counters of the third, values of the second, and so on; so what
the counters cost is hidden behind the values of the sum before.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

from ina.errors import InvalidInputError
from ina.host.arrays import VALUE_TYPES, Array
from ina.host.sparse.agreement import MOST_BLOCKS, Agreement, Begin
from ina.host.sparse.counts import NO_BLOCKS, BlockCounts
from ina.host.sparse.kernels import Numbers
from ina.host.sparse.parts import Blocks, Part, Rows, RowSums
from ina.host.turns import Later, Sum, Then, Turns, hand_over
from ina.protocol.coding import WHOLE, Coding
from ina.protocol.collective import Collective, Reduction

T = TypeVar("T")


class BlockSum(Later[T], Generic[T]):
    """One sparse sum that is under way. Its values are summed after :meth:`BlockStream.flush`."""

    def __init__(self, owner: BlockSums, part: Part[T], op: Reduction, coding: Coding) -> None:
        """For BlockStream. Its counters have their place in the order from now on."""
        super().__init__()
        self.blocks = int(part.marks.size)
        self.own = part.own
        """Blocks that are not zero on this rank."""
        self.union: int | None = None
        """Blocks that are not zero on some rank, once that is known; all ranks get the same."""
        self._owner, self._op, self._coding = owner, op, coding
        self._part: Part[T] | None = part
        self._union = owner.agreement.union(part.marks)
        self._values: Sum[Any] | None = None

    def begin_values(self) -> None:
        """For BlockStream. They have their place in the order from now on."""
        agreement = self._owner.agreement
        prepared = Then(self._union, self._prepare)
        self._values = agreement.turns.submit(
            lambda: agreement.begin(*prepared.wait()), after=prepared
        )
        self._values.add_done_callback(self._finish)

    def has_ended(self, timeout_s: float | None) -> bool:
        """See Later. Raises InvalidInputError where it never ends: the stream was not flushed."""
        if self._values is None:
            raise InvalidInputError("a sparse sum is waited for whose stream is not flushed")
        return super().has_ended(timeout_s)

    def _prepare(self, union: Numbers) -> tuple[Array, Array, Collective]:
        assert self._part is not None
        self.union = int(union.size)
        source, target = self._part.values(union)
        what = Collective(VALUE_TYPES[self._part.dtype], source.size, self._op)
        return source, target, self._coding.of(what)

    def _finish(self, values: Sum[Any]) -> None:
        part, self._part = self._part, None
        assert part is not None
        try:
            values.wait()
            result = part.result(self._union.wait())
        except Exception as error:
            self._fail(error)
            return
        self._owner.count(self)
        self._succeed(result)

    def _hand_over(self) -> None:
        assert self._values is not None
        hand_over(self._values)


class BlockStream:
    """Sparse sums one after the other, all ranks the same ones. For one thread."""

    def __init__(self, owner: BlockSums) -> None:
        """For BlockSums."""
        self._owner = owner
        self._last: BlockSum[Any] | None = None

    def blocks(
        self,
        array: Array,
        block_elems: int,
        out: Array | None = None,
        op: Reduction = Reduction.SUM,
        coding: Coding = WHOLE,
    ) -> BlockSum[Array]:
        """Begin the sum of an array, of which blocks of so many values are sent or not.

        `array`: as of Session.all_reduce; of the same shape and type on all ranks; it is read, and
        `out` written, until the end; they may be the same. `out`: None: a new array.

        The result is the dense sum, +0 outside of the union. Raises as all_reduce does.
        """
        if block_elems < 1:
            raise InvalidInputError(f"blocks of {block_elems} values: want 1 or more")
        return self.begin(Blocks(array, block_elems, out), op, coding)

    def rows(
        self,
        numbers: Numbers,
        rows: Array,
        count: int,
        op: Reduction = Reduction.SUM,
        coding: Coding = WHOLE,
    ) -> BlockSum[RowSums]:
        """Begin the sum of an array of so many rows of which this rank has some, or none.

        `numbers`: int64, rising, below `count`. `rows`: as many, C-contiguous; shape and type of a
        row are the same on all ranks. The result is the rows that some rank has. Raises as above.
        """
        return self.begin(Rows(numbers, rows, count), op, coding)

    def begin(self, part: Part[T], op: Reduction, coding: Coding = WHOLE) -> BlockSum[T]:
        """Begin the sum of what a part says."""
        try:
            begun = BlockSum(self._owner, part, op, coding)
        finally:
            self.flush()  # the one before
        self._last = begun
        return begun

    def flush(self) -> None:
        """None comes after the last one for now: its values may go. Idempotent."""
        last, self._last = self._last, None
        if last is not None:
            last.begin_values()


class BlockSums:
    """Sparse sums of a job. Thread-safe; all ranks must begin the same ones in the same order."""

    def __init__(
        self, turns: Turns, begin: Begin, workers: int, most_blocks: int = MOST_BLOCKS
    ) -> None:
        """`turns`: through which *all* operations of the job go. `begin`: begins one at once; of
        `Blocks` with `out` the array itself source and target are always the same.

        `most_blocks`: are counted at once; beyond, groups of them first.
        """
        self.agreement = Agreement(turns, begin, workers, most_blocks)
        self._lock = threading.Lock()
        self._counts = NO_BLOCKS

    def stream(self) -> BlockStream:
        """For one sum, or for several in a row, of which each hides what it costs to agree."""
        return BlockStream(self)

    def all_reduce(
        self,
        parts: Sequence[tuple[Array, Array | None]],
        block_elems: int,
        op: Reduction = Reduction.SUM,
        coding: Coding = WHOLE,
    ) -> list[BlockSum[Array]]:
        """Begin the sums of arrays, each with its `out`. Raises as BlockStream.blocks."""
        stream = self.stream()
        try:
            return [stream.blocks(array, block_elems, out, op, coding) for array, out in parts]
        finally:
            stream.flush()

    def count(self, done: BlockSum[Any]) -> None:
        """For BlockSum."""
        assert done.union is not None
        with self._lock:
            counts = self._counts
            self._counts = replace(
                counts,
                sums=counts.sums + 1,
                blocks=counts.blocks + done.blocks,
                own=counts.own + done.own,
                union=counts.union + done.union,
            )

    @property
    def counts(self) -> BlockCounts:
        """So far."""
        return self._counts
