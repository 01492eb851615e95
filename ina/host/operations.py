"""What the ranks of a session do together with arrays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np

from ina.errors import InvalidInputError
from ina.host import arrays, failure
from ina.host.arrays import Array
from ina.host.deferred import BlockHandle
from ina.host.errors import OperationTimeoutError
from ina.host.handle import Handle
from ina.host.sparse import BlockSums
from ina.host.sparse.parts import checked_parts
from ina.host.ticket import Ticket
from ina.host.turns import Later, Together
from ina.protocol.coding import checked_coding
from ina.protocol.collective import Collective, CollectiveKind
from ina.protocol.spec import ValueType

T = TypeVar("T")


class Operations:
    """Thread-safe; all ranks must call the same in the same order, with arrays of the same size."""

    _coding: str
    """How floats travel where a call does not say."""
    _packet_values: int
    _sparse: BlockSums

    @property
    @abstractmethod
    def ticket(self) -> Ticket:
        """By which it works now."""

    @abstractmethod
    def _in_turn(
        self, ptr_in: int, ptr_out: int, what: Collective, keep: object, result: T
    ) -> Handle[T]:
        """Of what is submitted, now or behind sparse sums."""

    @abstractmethod
    def _wait_error(self, timeout_s: float) -> OperationTimeoutError:
        """Of a handle that was waited for in vain."""

    @overload
    def all_reduce(
        self,
        array: Array,
        op: str = ...,
        *,
        out: Array | None = ...,
        async_op: Literal[False] = ...,
        wire: str | None = ...,
    ) -> Array: ...
    @overload
    def all_reduce(
        self,
        array: Array,
        op: str = ...,
        *,
        out: Array | None = ...,
        async_op: Literal[True],
        wire: str | None = ...,
    ) -> Handle[Array]: ...
    @overload
    def all_reduce(
        self,
        array: Array,
        op: str = ...,
        *,
        out: Array | None = ...,
        async_op: bool,
        wire: str | None = ...,
    ) -> Array | Handle[Array]: ...
    def all_reduce(
        self,
        array: Array,
        op: str = "sum",
        *,
        out: Array | None = None,
        async_op: bool = False,
        wire: str | None = None,
    ) -> Array | Handle[Array]:
        """Sum (or average, op "avg") the workers' arrays; every rank gets the same bits.

        `array`: C-contiguous, any shape; float32, float16, ml_dtypes.bfloat16 or int32. `out`:
        where the result goes, same dtype and shape; `array` itself for in place; by default a new
        array. int32 sums wrap; docs/host.md has the error bound of floats. With `async_op` returns
        a Handle. `wire`: how floats travel, "32", "16", "8", "16-stochastic" or "8-stochastic", the
        same on all ranks; None: as the session's options say.

        Raises UnsupportedDtypeError, UnsupportedOpError, InvalidArrayError, InvalidInputError,
        HeadroomError, OperationTimeoutError, SessionClosedError, JobFailedError: WorkerLostError,
        JobEvictedError, SwitchLostError, RanksDifferError, JobEndedError, CorruptedSumError,
        WindowError.
        """
        coding = checked_coding("wire", self._coding if wire is None else wire)
        what = coding.of(Collective(arrays.check_input(array), array.size, arrays.reduction(op)))
        result = arrays.prepare_output(array, out)
        handle = self._in_turn(_address(array), _address(result), what, (array, result), result)
        return handle if async_op else handle.wait()

    @overload
    def all_reduce_blocks(
        self,
        array: Array,
        op: str = ...,
        *,
        block_elems: int | None = ...,
        out: Array | None = ...,
        async_op: Literal[False] = ...,
        wire: str | None = ...,
    ) -> Array: ...
    @overload
    def all_reduce_blocks(
        self,
        array: Sequence[Array],
        op: str = ...,
        *,
        block_elems: int | None = ...,
        out: Sequence[Array] | None = ...,
        async_op: Literal[False] = ...,
        wire: str | None = ...,
    ) -> list[Array]: ...
    @overload
    def all_reduce_blocks(
        self,
        array: Array,
        op: str = ...,
        *,
        block_elems: int | None = ...,
        out: Array | None = ...,
        async_op: Literal[True],
        wire: str | None = ...,
    ) -> BlockHandle[Array]: ...
    @overload
    def all_reduce_blocks(
        self,
        array: Sequence[Array],
        op: str = ...,
        *,
        block_elems: int | None = ...,
        out: Sequence[Array] | None = ...,
        async_op: Literal[True],
        wire: str | None = ...,
    ) -> BlockHandle[list[Array]]: ...
    def all_reduce_blocks(
        self,
        array: Array | Sequence[Array],
        op: str = "sum",
        *,
        block_elems: int | None = None,
        out: Array | Sequence[Array] | None = None,
        async_op: bool = False,
        wire: str | None = None,
    ) -> Array | list[Array] | BlockHandle[Array] | BlockHandle[list[Array]]:
        """As :meth:`all_reduce`, of arrays that are mostly zero: sends what some rank has.

        `array`: one, or a list, of which each agrees while the one before is summed. Blocks of
        `block_elems` values that are zero on all ranks are not sent and are +0 in the result;
        default: a packet's. `out`: a list for a list. All ranks call it with the same shapes,
        types and blocks. From 9 tenths of the blocks on all is sent. Floats are rounded as by
        all_reduce, but with other neighbours: within its bound, and the same on all ranks.

        Raises as all_reduce does.
        """
        coding = checked_coding("wire", self._coding if wire is None else wire)
        parts = checked_parts(array, out)
        if block_elems is None:
            block_elems = self._packet_values * 32 // coding.bits
        sums = self._sparse.all_reduce(parts, block_elems, arrays.reduction(op), coding)
        later: Later[Any] = sums[0] if isinstance(array, np.ndarray) else Together(sums)
        handle: BlockHandle[Any] = BlockHandle(sums, later, self._wait_error)
        return handle if async_op else handle.wait()

    @overload
    def reduce(
        self,
        array: Array,
        root: int,
        op: str = ...,
        *,
        out: Array | None = ...,
        async_op: Literal[False] = ...,
    ) -> Array | None: ...
    @overload
    def reduce(
        self,
        array: Array,
        root: int,
        op: str = ...,
        *,
        out: Array | None = ...,
        async_op: Literal[True],
    ) -> Handle[Array | None]: ...
    def reduce(
        self,
        array: Array,
        root: int,
        op: str = "sum",
        *,
        out: Array | None = None,
        async_op: bool = False,
    ) -> Array | Handle[Array | None] | None:
        """Sum (or average) the workers' arrays for rank `root` alone; the others get None.

        As :meth:`all_reduce`. `out` counts on the root. Values go up from all others, and down to
        the root.
        """
        self._check_root(root)
        coding = checked_coding("wire", self._coding)
        type_, kind = arrays.check_input(array), CollectiveKind.REDUCE
        what = coding.of(Collective(type_, array.size, arrays.reduction(op), kind, root))
        result = arrays.prepare_output(array, out) if what.gets(self.ticket.rank) else None
        handle = self._in_turn(_address(array), _address(result), what, (array, result), result)
        return handle if async_op else handle.wait()

    @overload
    def reduce_scatter(
        self,
        array: Array,
        op: str = ...,
        *,
        out: Array | None = ...,
        async_op: Literal[False] = ...,
        wire: str | None = ...,
    ) -> Array: ...
    @overload
    def reduce_scatter(
        self,
        array: Array,
        op: str = ...,
        *,
        out: Array | None = ...,
        async_op: Literal[True],
        wire: str | None = ...,
    ) -> Handle[Array]: ...
    def reduce_scatter(
        self,
        array: Array,
        op: str = "sum",
        *,
        out: Array | None = None,
        async_op: bool = False,
        wire: str | None = None,
    ) -> Array | Handle[Array]:
        """Sum (or average) the workers' arrays; each rank gets its part of the result.

        `array`: as of :meth:`all_reduce`; its first dimension is world_size parts of equal length,
        in the order of the ranks. `out`: where the own part goes, apart from `array`. The part has
        the bits of an all_reduce of the ranks' parts.

        Raises as all_reduce does.
        """
        coding = checked_coding("wire", self._coding if wire is None else wire)
        value_type = arrays.check_input(array)
        part = arrays.parts_of(array, self.ticket.world_size)[0]
        result = arrays.prepare_part(array, part, out)
        what = Collective(
            value_type, part.size, arrays.reduction(op), CollectiveKind.REDUCE_SCATTER
        )
        keep = (array, result)
        handle = self._in_turn(_address(array), _address(result), coding.of(what), keep, result)
        return handle if async_op else handle.wait()

    @overload
    def all_gather(
        self, array: Array, *, out: Array | None = ..., async_op: Literal[False] = ...
    ) -> Array: ...
    @overload
    def all_gather(
        self, array: Array, *, out: Array | None = ..., async_op: Literal[True]
    ) -> Handle[Array]: ...
    def all_gather(
        self, array: Array, *, out: Array | None = None, async_op: bool = False
    ) -> Array | Handle[Array]:
        """Every rank gets the arrays of all, bit by bit, stacked in the order of the ranks.

        `array`: C-contiguous, any dtype but objects, any shape; the same on all ranks. `out`: of
        shape (world_size, *array.shape), where the own part of it may be `array`.

        Raises as all_reduce does.
        """
        arrays.check_bytes(array)
        result = arrays.prepare_gathered(array, self.ticket.world_size, self.ticket.rank, out)
        what = Collective(ValueType.BYTES, array.nbytes, kind=CollectiveKind.ALL_GATHER)
        keep = (array, result)
        handle = self._in_turn(_address(array), _address(result), what, keep, result)
        return handle if async_op else handle.wait()

    @overload
    def broadcast(self, array: Array, root: int, *, async_op: Literal[False] = ...) -> Array: ...
    @overload
    def broadcast(self, array: Array, root: int, *, async_op: Literal[True]) -> Handle[Array]: ...
    def broadcast(
        self, array: Array, root: int, *, async_op: bool = False
    ) -> Array | Handle[Array]:
        """Every rank's array becomes that of rank `root`, bit by bit, in place; returns it.

        `array`: as of :meth:`all_gather`, and writeable but on the root. Raises as all_reduce does.
        """
        self._check_root(root)
        arrays.check_bytes(array, writes=self.ticket.rank != root)
        kind = CollectiveKind.BROADCAST
        what = Collective(ValueType.BYTES, array.nbytes, kind=kind, root=root)
        handle = self._in_turn(_address(array), _address(array), what, array, array)
        return handle if async_op else handle.wait()

    @overload
    def barrier(self, *, async_op: Literal[False] = ...) -> None: ...
    @overload
    def barrier(self, *, async_op: Literal[True]) -> Handle[None]: ...
    def barrier(self, *, async_op: bool = False) -> Handle[None] | None:
        """Wait until all ranks have come here: one round trip. Raises as all_reduce does."""
        what = Collective(ValueType.INT32, 0, kind=CollectiveKind.BARRIER)
        handle = self._in_turn(0, 0, what, None, None)
        return handle if async_op else handle.wait()

    def submit(
        self, ptr_in: int, ptr_out: int, what: Collective, *, keep: object = None
    ) -> Handle[None]:
        """Begin a collective of what is at address `ptr_in`, whose result comes to `ptr_out`.

        Both may be equal, and must stay valid until the handle is done; `keep` is any object that
        sees to that. Returns at once. Raises ValueError: there is no such collective; and as
        `all_reduce` does.
        """
        return self._in_turn(ptr_in, ptr_out, what, keep, None)

    def _check_root(self, root: int) -> None:
        if not 0 <= root < self.ticket.world_size:
            raise InvalidInputError(
                f"{failure.who(self.ticket)}: root {root}: want a rank,"
                f" 0..{self.ticket.world_size - 1}"
            )


def _address(array: Array | None) -> int:
    return 0 if array is None else array.ctypes.data
