"""The documented error bound of a float sum, computed from the inputs alone."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

# Mantissa bits with the hidden one, least exponent of a normal number, by torch's name.
_MANTISSA_BITS = {"float32": 24, "float16": 11, "bfloat16": 8}
_MIN_EXPONENT = {"float32": -126, "float16": -14, "bfloat16": -126}


def sum_and_bound(
    inputs: NDArray[np.float64], values_per_packet: int, dtype: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Exact sum and largest allowed error of each element; ``inputs`` has shape (workers, elems).

    A block of ``values_per_packet`` elements has the scale f = 2^(31 - ceil(log2 n) - E) with E the
    least exponent such that every |x| of the block is below 2^E; the sum is off by at most n/(2f).
    It is then rounded to float32 and to ``dtype``: half a unit in the last place each.
    """
    workers, elems = inputs.shape
    exact = inputs.sum(axis=0)
    bound = np.zeros(elems)
    for first in range(0, elems, values_per_packet):
        block = slice(first, first + values_per_packet)
        peak = np.abs(inputs[:, block]).max()
        if peak == 0:
            continue
        exponent = max(math.frexp(peak)[1], -95)
        scale = 2.0 ** (31 - math.ceil(math.log2(workers)) - exponent)
        bound[block] = workers / (2 * scale)
    magnitude = np.abs(exact) + bound
    for name in ("float32", dtype):
        exponent_of_last_bit = np.maximum(
            np.frexp(magnitude)[1] - _MANTISSA_BITS[name],
            _MIN_EXPONENT[name] - _MANTISSA_BITS[name] + 1,
        )
        bound = bound + 0.5 * np.exp2(exponent_of_last_bit.astype(np.float64))
    return exact, bound
