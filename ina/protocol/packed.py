"""Words that hold two or four values: the columns that a switch has added without knowing of them.

A word is the sum of q_j * 2**(bits * j); see docs/protocol.md, "Packed words".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def columns_of(words: NDArray[Any], bits: int) -> NDArray[np.int64]:
    """The integers of int32 words, by column, from the lowest up: shape (32 // bits, words).

    A column that borrowed from the one above gives it back.
    """
    left = words.astype(np.int64)
    half = 1 << (bits - 1)
    columns = []
    for _ in range(32 // bits):
        column = (left + half) % (2 * half) - half
        columns.append(column)
        left = (left - column) >> bits
    return np.stack(columns)
