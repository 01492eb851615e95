"""What ranks contribute, from a seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

INT32 = np.dtype(np.int32)


def random_parts(
    dtype: np.dtype[Any], workers: int, length: int, seed: int | None = None
) -> list[NDArray[Any]]:
    """Of each worker; `seed`: its length, unless given."""
    rng = np.random.default_rng(length if seed is None else seed)
    if dtype == INT32:
        return [
            rng.integers(-(2**31), 2**31, length, dtype=np.int64).astype(np.int32)
            for _ in range(workers)
        ]
    # Magnitudes that differ between blocks and workers.
    return [
        (rng.normal(size=length) * 2.0 ** rng.integers(-8, 8, length)).astype(dtype)
        for _ in range(workers)
    ]
