"""Generated look-ups: Zipf's law, and the tables of MLPerf's recommendation model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MLPERF_ROWS = (
    *(40_000_000, 39_060, 17_295, 7_424, 20_265, 3, 7_122, 1_543, 63, 40_000_000, 3_067_956),
    *(405_282, 10, 2_209, 11_938, 155, 4, 976, 14, 40_000_000, 40_000_000, 40_000_000, 590_152),
    *(12_973, 108, 36),
)
"""Of the tables of MLPerf's DLRM-DCNv2 (training v3.0)."""
MLPERF_BAGS = (3, 2, 1, 2, 6, 1, 1, 1, 1, 7, 3, 8, 1, 6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1)
"""How many rows of each table a sample has there."""
_STRIDE = 7_919
"""A prime and so, but for tables of its multiples, multiplication by it is a permutation."""


class Zipf:
    """Rows of a table: the k-th most frequent is drawn k to the power of `exponent` times less
    often than the first. Frequent rows are anywhere in the table, not in front."""

    def __init__(self, rows: int, exponent: float) -> None:
        """Takes 8 bytes a row."""
        self._rows = rows
        self._upto = np.cumsum(np.arange(1, rows + 1, dtype=np.float64) ** -exponent)

    def draw(self, random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Row numbers of this shape."""
        drawn = np.searchsorted(self._upto, random.random(shape) * self._upto[-1])
        rows: NDArray[np.int64] = np.minimum(drawn, self._rows - 1) * _STRIDE % self._rows
        return rows
