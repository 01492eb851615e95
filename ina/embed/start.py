"""The rows that a table has before anything is learned."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK_ROWS = 4096
"""Numbered by a generator of their own, so that a host makes only blocks in which it has rows."""


def normal_rows(seed: int, table: int, rows: NDArray[np.int64], dim: int) -> NDArray[np.float32]:
    """These rows of a table, of mean 0 and variance 1, as ``nn.EmbeddingBag``'s are distributed.

    A row's values follow from the seed, the table's number and its own, and not from who owns it.
    """
    values = np.empty((rows.size, dim), np.float32)
    if rows.size == 0:
        return values
    order = np.argsort(rows, kind="stable")
    blocks, firsts = np.unique(rows[order] // _BLOCK_ROWS, return_index=True)
    ends = np.append(firsts[1:], rows.size)
    for block, first, end in zip(blocks, firsts, ends, strict=True):
        generator = np.random.Generator(np.random.Philox([seed, table << 32 | int(block)]))
        made = generator.standard_normal((_BLOCK_ROWS, dim), np.float32)
        which = order[first:end]
        values[which] = made[rows[which] % _BLOCK_ROWS]
    return values
