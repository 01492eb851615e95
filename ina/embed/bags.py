"""Bags of rows, as the native cores take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ina.embed.errors import InvalidBagsError, NoSuchRowError


@dataclass(frozen=True)
class Bags:
    """Bag i has the rows from ``offsets[i]`` to ``offsets[i + 1]``; made by :meth:`of`."""

    offsets: NDArray[np.int64]
    rows: NDArray[np.uint32]
    weights: NDArray[np.float32] | None = None

    @classmethod
    def of(
        cls,
        rows: ArrayLike,
        offsets: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        *,
        limit: int,
    ) -> Bags:
        """Bags of a table with `limit` rows.

        Args:
            rows: integers of any width, shape (n,).
            offsets: where bags begin, shape (bags,), the first 0, as ``nn.EmbeddingBag`` has them;
                none: each row is a bag of its own.
            weights: float32, shape (n,); none: 1.

        Raises:
            NoSuchRowError: a row is negative, or `limit` or more.
            InvalidBagsError: a wrong dtype or shape, or offsets that fall or are beyond the rows.
        """
        given = np.asarray(rows)
        if given.ndim != 1 or given.dtype.kind not in "iu":
            raise InvalidBagsError(f"rows: {given.dtype} {given.shape}: want integers, (n,)")
        _check_range(given, limit)
        ends = _ends(offsets, given.size)
        return cls(
            ends, np.ascontiguousarray(given, dtype=np.uint32), _weights(weights, given.size)
        )

    @property
    def count(self) -> int:
        """Bags."""
        return self.offsets.size - 1

    @property
    def address(self) -> tuple[int, int, int, int]:
        """As the native calls take it. The arrays must stay meanwhile."""
        weights = 0 if self.weights is None else self.weights.ctypes.data
        return self.count, self.offsets.ctypes.data, self.rows.ctypes.data, weights


def _check_range(rows: NDArray[np.integer], limit: int) -> None:
    if rows.size == 0:
        return
    for row in (int(rows.min()), int(rows.max())):
        if not 0 <= row < limit:
            raise NoSuchRowError(f"row {row}: the table has rows 0 to {limit - 1}")


def _ends(offsets: ArrayLike | None, rows: int) -> NDArray[np.int64]:
    if offsets is None:
        return np.arange(rows + 1, dtype=np.int64)
    given = np.asarray(offsets)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InvalidBagsError(f"offsets: {given.dtype} {given.shape}: want integers, (bags,)")
    ends = np.append(given.astype(np.int64), np.int64(rows))
    if ends[0] != 0:
        raise InvalidBagsError(f"offsets: the first is {ends[0]}, want 0")
    if np.any(np.diff(ends) < 0):
        raise InvalidBagsError(f"offsets: they fall, or go beyond the {rows} rows")
    return ends


def _weights(weights: ArrayLike | None, rows: int) -> NDArray[np.float32] | None:
    if weights is None:
        return None
    given = np.asarray(weights)
    if given.shape != (rows,) or given.dtype != np.float32:
        raise InvalidBagsError(f"weights: {given.dtype} {given.shape}: want float32, ({rows},)")
    return np.ascontiguousarray(given)
