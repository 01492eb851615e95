"""What a rank gives to a sparse sum: a whole array, or some of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from ina.host import arrays
from ina.host.arrays import Array
from ina.host.errors import InvalidArrayError
from ina.host.sparse import kernels
from ina.host.sparse.kernels import Marks, Numbers, Others

T_co = TypeVar("T_co", covariant=True)

DENSE_TENTHS = 9
"""From this share of the blocks on an array is summed as it is: to gather them gains nothing."""


class Part(Protocol[T_co]):
    """One rank's, of one sum."""

    marks: Marks
    own: int
    """Blocks of this rank that are not zero."""
    dtype: np.dtype[np.generic]

    def values(self, union: Numbers) -> tuple[Array, Array]:
        """What is to be summed, and where to, of these blocks."""

    def result(self, union: Numbers) -> T_co:
        """Once that has been summed."""


class Blocks:
    """A whole array, whose blocks outside of the union are zero on all ranks."""

    def __init__(self, array: Array, block_elems: int, out: Array | None) -> None:
        """`out`: for the result; None: a new one. Raises as all_reduce does."""
        arrays.check_input(array)
        if out is not None:
            arrays.prepare_output(array, out)
        self.dtype = array.dtype
        self.marks, self.own = kernels.mark(array, block_elems)
        self._array, self._block_elems, self._out = array, block_elems, out
        self._compact: Array | None = None

    def values(self, union: Numbers) -> tuple[Array, Array]:
        """See Part."""
        if 10 * union.size >= DENSE_TENTHS * self.marks.size:
            self._out = arrays.prepare_output(self._array, self._out)
            return self._array, self._out
        self._compact = kernels.gather(self._array, self._block_elems, union)
        return self._compact, self._compact

    def result(self, union: Numbers) -> Array:
        """See Part."""
        array, out, compact = self._array, self._out, self._compact
        if compact is None:
            assert out is not None
            return out
        if out is None:
            out, others = np.zeros(array.shape, array.dtype), Others.STAY
        else:
            is_in_place = out.ctypes.data == array.ctypes.data
            others = Others.BY_MARK if is_in_place else Others.CLEAR
        kernels.spread(compact, self._block_elems, union, out, others, self.marks)
        return out


class RowSums(NamedTuple):
    """Of all rows of which some rank has one."""

    numbers: Numbers
    """Rising, the same on all ranks."""
    rows: Array
    """As many, in their order: the sums."""


class Rows:
    """Some rows of an array, any number of them; the others are zero."""

    def __init__(self, numbers: Numbers, rows: Array, count: int) -> None:
        """`numbers`: int64, rising, each once, below `count`, that of the array's rows. `rows`:
        as many, C-contiguous, of the same shape and type on all ranks; a result takes new memory.

        Raises UnsupportedDtypeError, InvalidArrayError.
        """
        arrays.check_input(rows)
        _check_numbers(numbers, rows, count)
        self.dtype = rows.dtype
        self.marks = np.zeros(count, np.uint8)
        self.marks[numbers] = 1
        self.own = int(numbers.size)
        self._numbers, self._rows = numbers, rows
        self._sums = rows

    def values(self, union: Numbers) -> tuple[Array, Array]:
        """See Part."""
        self._sums = kernels.spread_rows(self._rows, self._numbers, union)
        return self._sums, self._sums

    def result(self, union: Numbers) -> RowSums:
        """See Part."""
        return RowSums(union, self._sums)


def checked_parts(
    given: Array | Sequence[Array], out: Array | Sequence[Array] | None
) -> list[tuple[Array, Array | None]]:
    """Each array with where its result goes, before anything of them is begun.

    Raises UnsupportedDtypeError, InvalidArrayError.
    """
    if isinstance(given, np.ndarray) or isinstance(out, np.ndarray):
        given, out = [given], [out]  # type: ignore[list-item]  # found by what follows
    outs: list[Array | None] = [None] * len(given) if out is None else list(out)
    if len(outs) != len(given):
        raise InvalidArrayError(f"out: {len(outs)} arrays, must be {len(given)}")
    for array, to in zip(given, outs, strict=True):
        arrays.check_input(array)
        if to is not None:
            arrays.prepare_output(array, to)
    return list(zip(given, outs, strict=True))


def _check_numbers(numbers: Numbers, rows: Array, count: int) -> None:
    if numbers.dtype != np.int64 or numbers.ndim != 1 or not numbers.flags.c_contiguous:
        raise InvalidArrayError(
            f"numbers of rows: are {numbers.dtype} {numbers.shape}, must be int64, contiguous"
        )
    if rows.ndim < 1 or rows.shape[0] != numbers.size:
        raise InvalidArrayError(f"rows of shape {rows.shape}: {numbers.size} numbers are given")
    if numbers.size and not (
        numbers[0] >= 0 and numbers[-1] < count and (numbers[1:] > numbers[:-1]).all()
    ):
        raise InvalidArrayError(f"numbers of rows: must rise, from 0 to below {count}")
