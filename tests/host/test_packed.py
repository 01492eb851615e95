"""Two or four values in a word: each instruction set's kernels against NumPy's; their bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ina._native import quantize as native
from ina._native.host import WorkerCore
from ina.host.arrays import VALUE_TYPES
from ina.protocol.codec import decode, encode
from ina.protocol.coding import Coding, column_limit
from ina.protocol.collective import Collective, Rounding
from ina.protocol.spec import Flag, ValueType
from ina.testing import numerics, packed
from tests.selection import examples
from tests.worlds.virtual.cores import result_of, worker_config

Array = NDArray[Any]

KERNELS = native.kernel_names()
WORKERS = {16: (1, 2, 3, 4, 7, 8, 16, 32, 64, 1024), 8: (1, 2, 3, 4, 7, 8, 16, 32, 127)}
CASES = [(bits, workers) for bits, counts in WORKERS.items() for workers in counts]


def pack(
    kernels: str, block: Array, bits: int, exponent: int, workers: int, key: int = -1
) -> packed.Words:
    value_type = VALUE_TYPES[block.dtype].packed_in(bits)
    words = native.pack(kernels, value_type, block.ctypes.data, block.size, exponent, workers, key)
    return np.frombuffer(words, ">i4").astype(np.int32)


def unpack(
    kernels: str,
    words: packed.Words,
    how: tuple[np.dtype[Any], int],
    bits: int,
    exponent: int,
    workers: int,
    divisor: int = 1,
) -> Array:
    dtype, count = how
    out = np.empty(count, dtype)
    value_type = VALUE_TYPES[dtype].packed_in(bits)
    wire = words.astype(">i4").tobytes()
    native.unpack(kernels, value_type, wire, exponent, workers, divisor, out.ctypes.data, count)
    return out


@pytest.mark.parametrize(("bits", "workers"), CASES)
def test_sums_of_extreme_columns_are_exact(bits: int, workers: int) -> None:
    """All at the limit, of one sign and of both in neighbours: no borrow is lost, no word wraps."""
    most = column_limit(bits, workers)
    assert most == native.column_limit(bits, workers) >= 1
    columns = 32 // bits
    rng = np.random.default_rng(bits * workers)
    patterns = [
        np.full(8 * columns, most),
        np.full(8 * columns, -most),
        np.repeat([most, -most] * columns, 4),
        np.repeat([-most, most] * columns, 4),
        rng.integers(-most, most + 1, 8 * columns),
    ]
    for pattern in patterns:
        total = packed.pack(pattern, bits).astype(np.int64) * workers
        assert np.abs(total).max() < 2**31
        found = packed.unpack(total.astype(np.int32), bits, pattern.size)
        assert found.tolist() == (pattern * workers).tolist()
        # An exponent by which integers are summed as they are.
        exponent = 127 + (most + 1).bit_length() - 1
        for kernels in KERNELS:
            block = pattern.astype(np.float32)
            words = pack(kernels, block, bits, exponent, workers)
            assert words.tolist() == packed.pack(pattern, bits).tolist()
            how = (block.dtype, pattern.size)
            sums = unpack(kernels, total.astype(np.int32), how, bits, exponent, workers)
            assert sums.tolist() == (pattern * workers).tolist()


def test_how_much_a_column_has_is_what_the_page_says() -> None:
    assert [column_limit(16, n) for n in (2, 4, 8, 16, 32, 64, 1024)] == [
        *(16383, 8191, 4095, 2047, 1023, 511, 31)
    ]
    assert [column_limit(8, n) for n in (2, 4, 8, 16, 32, 64, 128)] == [63, 31, 15, 7, 3, 1, 0]


blocks = st.tuples(
    st.sampled_from(numerics.FLOATS), st.integers(1, 203), st.integers(0, 2**32 - 1),
    st.sampled_from(CASES),
)  # fmt: skip


def drawn(dtype: np.dtype[Any], size: int, seed: int) -> Array:
    """Of many magnitudes, some at the top of the block's range."""
    rng = np.random.default_rng(seed)
    block = (rng.standard_normal(size) * 2.0 ** rng.integers(-12, 3, size)).astype(dtype)
    block[rng.integers(0, size, 3)] = np.nextafter(np.float32(4), np.float32(0)).astype(dtype)
    return block


@settings(max_examples=examples(300), deadline=None)
@given(blocks, st.booleans(), st.sampled_from([1, 3, 8]))
def test_all_kernels_pack_and_unpack_as_numpy_does(
    case: tuple[Any, int, int, tuple[int, int]], is_random: bool, divisor: int
) -> None:
    dtype, size, seed, (bits, workers) = case
    block = drawn(dtype, size, seed)
    exponent = max(numerics.block_exponent(block), 127 + 3)
    factor, most = packed.scale(exponent, bits, workers), column_limit(bits, workers)
    key = seed if is_random else -1
    random = packed.random_bits(seed, size) if is_random else None
    expected = packed.pack(packed.integers(block, factor, most, random), bits)
    sums = expected.astype(np.int64) * workers
    found = packed.unpack(sums.astype(np.int32), bits, size).astype(np.float32)
    values = (found * (np.float32(1) / factor) * (np.float32(1) / np.float32(divisor))).astype(
        dtype
    )
    for kernels in KERNELS:
        assert pack(kernels, block, bits, exponent, workers, key).tolist() == expected.tolist()
        result = unpack(
            kernels, sums.astype(np.int32), (dtype, size), bits, exponent, workers, divisor
        )
        assert numerics.same_bits(result, values)


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from([(bits, n) for bits, n in CASES if n <= 64]),
    st.sampled_from(list(Rounding)),
    st.sampled_from(["sum", "avg"]),
    st.integers(0, 2**32 - 1),
)
def test_results_are_within_the_documented_bound(
    case: tuple[int, int], rounding: Rounding, op: str, seed: int
) -> None:
    bits, workers = case
    parts = [drawn(np.dtype(np.float32), 150, seed + rank) for rank in range(workers)]
    coding = Coding(bits, rounding)
    result = packed.all_reduce(parts, op, 16, coding)
    off = np.abs(result.astype(np.float64) - numerics.exact_result(parts, op))
    assert (off <= packed.error_bound(parts, op, 16, coding)).all()


@settings(max_examples=examples(100), deadline=None)
@given(blocks)
def test_rounding_to_the_nearest_prefers_no_sign(
    drawn_as: tuple[np.dtype[Any], int, int, tuple[int, int]],
) -> None:
    """Else gradients, of which as many are negative as positive, would drift."""
    dtype, size, seed, (bits, workers) = drawn_as
    block, exponent = drawn(dtype, size, seed), 127 + 2
    if size > 3:  # half a step, between two that are as near
        step = 4.0 / (2 ** ((column_limit(bits, workers) + 1).bit_length() - 1))
        block[:4] = np.array([0.5, 1.5, -0.5, -2.5]) * step
    for kernels in KERNELS:
        there, back = (
            unpack(
                kernels,
                pack(kernels, one, bits, exponent, workers),
                (dtype, size),
                *(bits, exponent, workers),
            ).astype(np.float64)
            for one in (block, -block)
        )
        assert there.tolist() == (-back).tolist()


def test_rounding_by_chance_is_right_on_average_and_another_on_each_rank() -> None:
    values = np.full(20_000, 2.25, np.float32)
    for kernels in KERNELS:
        means = []
        for rank in range(3):
            key = native.rounding_key(7, 0, rank)
            assert key == packed.rounding_key(7, 0, rank)
            words = pack(kernels, values, 8, 127 + 5, 4, key)  # t = 31: integers as they are
            integers = packed.unpack(words, 8, values.size)
            assert set(integers.tolist()) == {2, 3}
            means.append(integers.mean())
            again = pack(kernels, values, 8, 127 + 5, 4, key)
            assert (again == words).all()
        assert len(set(means)) == 3
        assert all(abs(mean - 2.25) < 0.02 for mean in means)


def test_no_sum_is_better_than_one_that_has_no_room() -> None:
    """Nobody submits it: sessions refuse it. The result is NaN, by the flag that all hear."""
    config = worker_config(0, 2, 4, 64)
    config.summands = 128
    core = WorkerCore(config)
    block = np.ones(64 * 4, np.float32)
    what = Collective(ValueType.FLOAT32_IN_8, block.size)
    core.submit(1, block.ctypes.data, block.ctypes.data, what, 0)
    (packet,) = core.poll_transmit(0)
    header, _ = decode(packet)  # which agrees on the exponent
    agreed = replace(result_of(header), digest=128 * header.digest % 2**16)
    core.on_result(encode(agreed), 1)
    (packet,) = core.poll_transmit(2)
    header, values = decode(packet)
    assert Flag.NON_FINITE in header.flags
    assert not values.any()


SUMMED = [it for it in ValueType if it is not ValueType.BYTES]


@pytest.mark.parametrize("value_type", SUMMED, ids=lambda it: it.name)
def test_what_a_value_type_says_of_its_words(value_type: ValueType) -> None:
    assert value_type.element.per_word == 1
    assert value_type.element.packed_in(value_type.bits) == value_type
    assert ValueType.INT32.packed_in(8) == ValueType.INT32
    with pytest.raises(ValueError, match="columns of 12 bits: there are 32, 16 and 8"):
        ValueType.FLOAT32.packed_in(12)
