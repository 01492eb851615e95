"""Sparse sums in NumPy: what they must be, bit for bit, whatever their blocks.

Written for reading, apart from the native code and from :mod:`ina.host.sparse`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ina.protocol.coding import Coding
from ina.testing import packed
from ina.testing.numerics import Array

Chosen = NDArray[np.bool_]
"""Of each block."""


def block_count(elems: int, block_elems: int) -> int:
    """The last block may be shorter."""
    return -(-elems // block_elems)


def values_of(chosen: Chosen, block_elems: int, elems: int) -> NDArray[np.bool_]:
    """Of each value, whether its block is chosen."""
    return np.repeat(chosen, block_elems)[:elems]


def union(parts: Sequence[Array], block_elems: int) -> Chosen:
    """The blocks in which some rank has a value that is not 0; NaN is none."""
    elems = parts[0].size
    blocks = block_count(elems, block_elems)
    padded = np.zeros(blocks * block_elems, np.bool_)
    for part in parts:
        padded[:elems] |= part != 0
    found: Chosen = np.logical_or.reduce(padded.reshape(blocks, block_elems), axis=1)
    return found


def all_reduce(
    parts: Sequence[Array], block_elems: int, op: str, words: int, coding: Coding, number: int = 1
) -> Array:
    """What every rank must get. ``number``: of the values' operation, from 1."""
    chosen = union(parts, block_elems)
    if 10 * int(chosen.sum()) >= 9 * chosen.size:
        return packed.all_reduce(parts, op, words, coding, number)
    kept = values_of(chosen, block_elems, parts[0].size)
    out = np.zeros_like(parts[0])
    out[kept] = packed.all_reduce([part[kept] for part in parts], op, words, coding, number)
    return out
