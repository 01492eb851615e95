"""The documented numerics of packed words (docs/protocol.md) in NumPy: what their sums must be.

Written for reading, apart from the native code, which is compared with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ina.protocol.coding import Coding, column_limit, exact_below
from ina.protocol.collective import Rounding
from ina.protocol.packed import columns_of
from ina.testing import numerics
from ina.testing.numerics import Array, block_exponent, exact_result

Words = NDArray[np.int32]


def scale(exponent: int, bits: int, workers: int) -> Any:
    """The float32 power of two that values are multiplied by."""
    return np.float32(math.ldexp(exact_below(bits, workers), 127 - exponent))


def pack(integers: NDArray[np.int64], bits: int) -> Words:
    """Words of integers: column j has those from j * words on; zeros fill up the last."""
    columns = 32 // bits
    words = -(-integers.size // columns)
    padded = np.zeros(columns * words, np.int64)
    padded[: integers.size] = integers
    weights = 2 ** (bits * np.arange(columns, dtype=np.int64))
    found = (padded.reshape(columns, words) * weights[:, None]).sum(axis=0)
    assert np.abs(found).max(initial=0) < 2**31, "no word wraps"
    packed: Words = found.astype(np.int32)
    return packed


def unpack(words: Words, bits: int, count: int) -> NDArray[np.int64]:
    """The ``count`` integers of words, from the lowest column up."""
    return columns_of(words, bits).reshape(-1)[:count]


def mix(word: int) -> int:
    """The finaliser of SplitMix64."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
    return word ^ (word >> 31)


def rounding_key(tensor: int, first_elem: int, rank: int) -> int:
    """Of a chunk's random bits."""
    return mix(mix(tensor) ^ mix(~first_elem % 2**64) ^ rank) >> 32


def random_bits(key: int, count: int) -> NDArray[np.uint32]:
    """32 of them for each value of a chunk."""
    with np.errstate(over="ignore"):
        word = np.uint32(key) + np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B9)
        word = (word ^ (word >> np.uint32(16))) * np.uint32(0x7FEB352D)
        word = (word ^ (word >> np.uint32(15))) * np.uint32(0x846CA68B)
    found: NDArray[np.uint32] = word ^ (word >> np.uint32(16))
    return found


def integers(
    block: Array, factor: Any, most: int, random: NDArray[np.uint32] | None
) -> NDArray[np.int64]:
    """What a worker sends of its block; ``random``: None where it rounds to the nearest."""
    scaled = block.astype(np.float32) * factor
    if random is None:
        rounded = np.rint(scaled)
    else:
        steps = (random >> np.uint32(23)).astype(np.float32)
        rounded = np.floor(scaled + (steps / np.float32(512) + np.float32(1 / 1024)))
    found: NDArray[np.int64] = np.clip(rounded, -most, most).astype(np.int64)
    return found


def all_reduce(
    parts: Sequence[Array], op: str, words: int, coding: Coding, tensor: int = 1
) -> Array:
    """What every rank must get, bit for bit, whatever the coding.

    ``words``: of a packet. ``tensor``: its number in the order of submission, from 1.
    """
    if coding.bits == 32 or parts[0].dtype == np.int32:
        return numerics.all_reduce(parts, op, words)
    out = np.empty_like(parts[0])
    bits, per_chunk = coding.bits, words * (32 // coding.bits)
    for first in range(0, out.size, per_chunk):
        chunk = slice(first, first + per_chunk)
        keys = None
        if coding.rounding == Rounding.STOCHASTIC:
            keys = [rounding_key(tensor, first, rank) for rank in range(len(parts))]
        out[chunk] = _chunk([part[chunk] for part in parts], op, bits, keys)
    return out


def _chunk(parts: Sequence[Array], op: str, bits: int, keys: Sequence[int] | None) -> Array:
    workers, size = len(parts), parts[0].size
    if not all(np.isfinite(part.astype(np.float32)).all() for part in parts):
        return np.full(size, np.nan, parts[0].dtype)
    exponent = max(block_exponent(part) for part in parts)
    if exponent == 0:
        return np.zeros_like(parts[0])
    factor, most = scale(exponent, bits, workers), column_limit(bits, workers)
    with np.errstate(over="ignore"):
        sums = sum(
            pack(integers(part, factor, most, key), bits).astype(np.int64)
            for part, key in zip(
                parts,
                [None] * workers if keys is None else [random_bits(key, size) for key in keys],
                strict=True,
            )
        )
    assert isinstance(sums, np.ndarray)
    total = unpack(sums.astype(np.int32), bits, size)
    share = np.float32(1.0) / np.float32(workers if op == "avg" else 1)
    with np.errstate(over="ignore"):
        result: Array = (total.astype(np.float32) * (np.float32(1.0) / factor) * share).astype(
            parts[0].dtype
        )
    return result


def error_bound(parts: Sequence[Array], op: str, words: int, coding: Coding) -> NDArray[np.float64]:
    """The documented bound on |result - exact|, elementwise; inputs finite, of float32.

    A contribution is off by half a step or, rounded stochastically or cut to the limit, by one.
    """
    exact = np.abs(exact_result(parts, op))
    bound = np.zeros_like(exact)
    bits = coding.bits
    workers, per_chunk = len(parts), words * (32 // bits)
    for first in range(0, exact.size, per_chunk):
        chunk = slice(first, first + per_chunk)
        exponent = max(block_exponent(part[chunk]) for part in parts)
        if exponent == 0:
            continue
        factor = float(scale(exponent, bits, workers))
        largest = max(float(np.abs(part[chunk]).max(initial=0)) * factor for part in parts)
        cut = largest > column_limit(bits, workers)
        steps = 1.0 if coding.rounding == Rounding.STOCHASTIC or cut else 0.5
        bound[chunk] = workers * steps / factor
    if op == "avg":
        bound /= workers
    return bound * 1.001 + exact * 2.0**-22
