"""What jobs of mode `stream` must get, written with NumPy: the specification of their numbers.

A lane's blocks of a float tensor share one exponent, that of the largest of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ina.testing import numerics
from ina.testing.numerics import Array


def all_reduce(parts: Sequence[Array], op: str, block: int, lanes: int) -> Array:
    """What every rank must get, bit for bit; ``block``: values of a packet, but for the last."""
    size = parts[0].size
    if parts[0].dtype == np.int32 or size == 0:
        return numerics.all_reduce(parts, op, block)
    out = np.empty_like(parts[0])
    blocks = np.arange(size) // block
    for lane in range(min(lanes, int(blocks[-1]) + 1)):
        own = blocks % lanes == lane
        of_lane = [_finite(part[own]) for part in parts]
        out[own] = numerics.all_reduce(of_lane, op, of_lane[0].size)
    for part in parts:
        strange = np.unique(blocks[~np.isfinite(part.astype(np.float32))])
        out[np.isin(blocks, strange)] = np.nan
    return out


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values.astype(np.float32)), values, np.zeros_like(values))
