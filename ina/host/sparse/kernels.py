"""What the native kernels do with blocks of arrays, for arrays of this package's own making.

Arrays are C-contiguous, of a type that the network sums; blocks are of `block_elems` values each,
the last may be shorter. Block numbers are int64 and rise.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from ina.extension import blocks as native
from ina.host.arrays import Array, value_type_of

Marks = NDArray[np.uint8]
"""Of each block: 0: zero, 1: not, 2: zero, with a sign somewhere."""
Words = NDArray[np.int32]
Numbers = NDArray[np.int64]


class Others(IntEnum):
    """What becomes of the blocks of an array that nothing is brought to."""

    STAY = 0
    CLEAR = 1
    BY_MARK = 2


def block_count(elems: int, block_elems: int) -> int:
    """How many there are."""
    return -(-elems // block_elems)


def mark(array: Array, block_elems: int) -> tuple[Marks, int]:
    """Which blocks are not zero, and how many. Those of +0 and -0 alone are; NaN is not."""
    marks = np.empty(block_count(array.size, block_elems), np.uint8)
    value_type = value_type_of(array.dtype)
    block_bytes = block_elems * array.itemsize
    own = native.mark(value_type, array.ctypes.data, array.nbytes, block_bytes, marks.ctypes.data)
    return marks, own


def mark_groups(marks: Marks, group_blocks: int) -> Marks:
    """Which groups of so many blocks have one that is not zero."""
    found = np.empty(block_count(marks.size, group_blocks), np.uint8)
    native.mark_groups(marks.ctypes.data, marks.size, group_blocks, found.ctypes.data)
    return found


def pack(marks: Marks, bits: int) -> Words:
    """A counter of so many bits for each, as many in a word as it has room for: 1 or 0."""
    words = np.empty(block_count(marks.size, 32 // bits), np.int32)
    native.pack(marks.ctypes.data, marks.size, bits, words.ctypes.data)
    return words


def marked(words: Words, blocks: int, bits: int) -> Numbers:
    """Whose counters are not 0, of so many."""
    found = np.empty(native.count_marked(words.ctypes.data, blocks, bits), np.int64)
    native.find_marked(words.ctypes.data, blocks, bits, found.ctypes.data)
    return found


def gathered_elems(elems: int, block_elems: int, which: Numbers) -> int:
    """How many values these blocks have."""
    last = block_count(elems, block_elems) - 1
    short = last * block_elems + block_elems - elems if which.size and which[-1] == last else 0
    return int(which.size) * block_elems - short


def gather(array: Array, block_elems: int, which: Numbers) -> Array:
    """These blocks, one behind the other."""
    compact = np.empty(gathered_elems(array.size, block_elems, which), array.dtype)
    native.gather(
        array.ctypes.data,
        array.nbytes,
        block_elems * array.itemsize,
        which.ctypes.data,
        which.size,
        compact.ctypes.data,
    )
    return compact


def spread(
    compact: Array, block_elems: int, which: Numbers, out: Array, others: Others, marks: Marks
) -> None:
    """And back. `marks`: of ``Others.BY_MARK``, of what `out` holds."""
    native.spread(
        compact.ctypes.data,
        out.nbytes,
        block_elems * out.itemsize,
        which.ctypes.data,
        which.size,
        others,
        marks.ctypes.data,
        out.ctypes.data,
    )


def spread_rows(rows: Array, own: Numbers, all_: Numbers) -> Array:
    """Rows of these numbers among those of all, which hold them; zeros where there is none."""
    spread = np.empty((all_.size, *rows.shape[1:]), rows.dtype)
    row_bytes = spread.itemsize * int(np.prod(rows.shape[1:], dtype=np.int64))
    native.spread_rows(
        rows.ctypes.data,
        row_bytes,
        own.ctypes.data,
        own.size,
        all_.ctypes.data,
        all_.size,
        spread.ctypes.data,
    )
    return spread
