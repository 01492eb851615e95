"""The documented numerics (docs/protocol.md) in NumPy, and their bound: what sums must be.

Written for reading, apart from the native code, which is compared with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

FLOATS: tuple[np.dtype[Any], ...] = (
    np.dtype(np.float32),
    np.dtype(np.float16),
    np.dtype(ml_dtypes.bfloat16),
)
# Bits of precision, and the smallest subnormal as a power of two.
PRECISION = {FLOATS[0]: (24, -149), FLOATS[1]: (11, -24), FLOATS[2]: (8, -133)}


_VALUES_AT_ONCE = 1 << 18


def block_exponent(block: Array) -> int:
    """The biased exponent that a worker announces for its block."""
    finite = np.abs(block.astype(np.float32))
    finite = finite[np.isfinite(finite)]
    largest = float(finite.max()) if finite.size else 0.0
    if largest == 0.0:
        return 0
    return min(max(math.frexp(largest)[1], -95), 128) + 127


def scale(exponent: int, workers: int) -> Any:
    """The float32 power of two that values are multiplied by."""
    return np.float32(math.ldexp(1.0, scale_bits(workers) - (exponent - 127)))


def scale_bits(workers: int) -> int:
    """What a value may have, so that the sum of as many fits an int32.

    Rounded, a float32 (24 bits) with 23 or fewer may be the power of two above it.
    """
    bits = 31 - math.ceil(math.log2(workers))
    return bits if bits >= 24 or workers < 2 ** (31 - bits) else bits - 1


def all_reduce(parts: Sequence[Array], op: str, values: int) -> Array:
    """What every rank must get, bit for bit; ``values``: of a chunk."""
    out = np.empty_like(parts[0])
    at_once = max(1, _VALUES_AT_ONCE // values) * values  # whole chunks
    for start in range(0, parts[0].size, at_once):
        some = slice(start, start + at_once)
        out[some] = _chunks([part[some] for part in parts], op, values)
    return out


def _chunks(parts: Sequence[Array], op: str, values: int) -> Array:
    workers, dtype, size = len(parts), parts[0].dtype, parts[0].size
    if dtype == np.int32:
        total = np.zeros(size, np.int64)
        for part in parts:
            total += part
        wrapped = (total + 2**31) % 2**32 - 2**31
        if op == "avg":
            wrapped = np.sign(wrapped) * (np.abs(wrapped) // workers)
        return wrapped.astype(np.int32)
    # By worker, chunk, value; zeros fill up the last chunk.
    padded = np.zeros((workers, -(-size // values) * values), np.float32)
    for block, part in zip(padded, parts, strict=True):
        block[:size] = part.astype(np.float32)
    blocks = padded.reshape(workers, -1, values)
    is_finite = np.isfinite(blocks)
    blocks[~is_finite] = 0.0
    largest = np.abs(blocks).max(axis=(0, 2))
    exponents = np.clip(np.frexp(largest)[1], -95, 128)
    exponents[largest == 0.0] = -127  # whatever the scale, the sum is 0
    shift = scale_bits(workers)
    f = np.ldexp(np.float32(1.0), np.minimum(shift - exponents, 127))[:, None]
    total = np.rint(blocks * f).astype(np.int64).sum(axis=0)
    assert np.abs(total).max(initial=0) < 2**31, "the scale must not let a sum overflow"
    factor = np.float32(1.0) / np.float32(workers if op == "avg" else 1)
    with np.errstate(over="ignore"):
        result: Array = total.astype(np.float32) * (np.float32(1.0) / f) * factor
    result[~is_finite.all(axis=(0, 2))] = np.nan
    with np.errstate(over="ignore"):
        rounded: Array = result.reshape(-1)[:size].astype(dtype)
    return rounded


def error_bound(parts: Sequence[Array], op: str, values: int) -> NDArray[np.float64]:
    """The documented bound on |result - exact|, elementwise; inputs finite, sum in range."""
    workers, dtype = len(parts), parts[0].dtype
    exact = np.abs(exact_result(parts, op))
    quantisation = np.zeros_like(exact)
    for start in range(0, exact.size, values):
        chunk = slice(start, start + values)
        exponent = max(block_exponent(part[chunk]) for part in parts)
        if exponent:
            quantisation[chunk] = workers / (2.0 * float(scale(exponent, workers)))
    if op == "avg":
        quantisation /= workers
    bits, smallest = PRECISION[dtype]
    # The sum becomes a float32 (AVG: and is multiplied by a float32 1/n, itself rounded), then
    # one of the output type.
    roundings = 2.0**-24 * (3 if op == "avg" else 1) + 2.0**-bits
    bound: NDArray[np.float64] = (exact + quantisation) * roundings * 1.01 + quantisation
    return bound + math.ldexp(1.0, smallest)


def exact_result(parts: Sequence[Array], op: str) -> NDArray[np.float64]:
    """Without quantisation, in float64."""
    total = np.zeros(parts[0].size, np.float64)
    for part in parts:
        total += part.astype(np.float64)
    if op == "avg":
        total /= len(parts)
    return total


def same_bits(left: Array, right: Array) -> bool:
    """Also where both are NaN, or zeros of different signs."""
    return left.dtype == right.dtype and left.tobytes() == right.tobytes()
