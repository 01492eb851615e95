"""The quantisers of each instruction set against NumPy, on edge cases and on random bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ina._native import quantize as native
from ina.host.arrays import VALUE_TYPES
from ina.testing import numerics

Array = NDArray[Any]

KERNELS = native.kernel_names()
BITS = {dtype: np.dtype(f"u{dtype.itemsize}") for dtype in numerics.FLOATS}


def scan(kernels: str, block: Array) -> tuple[int, bool]:
    return native.scan(kernels, VALUE_TYPES[block.dtype], block.ctypes.data, block.size)


def quantise(kernels: str, block: Array, scale: float) -> NDArray[np.int32]:
    address = block.ctypes.data
    wire = native.quantize(kernels, VALUE_TYPES[block.dtype], address, block.size, scale)
    return np.frombuffer(wire, ">i4").astype(np.int32)


def dequantise(
    kernels: str, sums: NDArray[np.int32], dtype: np.dtype[Any], inverse: float, divisor: int
) -> Array:
    out = np.empty(sums.size, dtype)
    wire = sums.astype(">i4").tobytes()
    native.dequantize(kernels, VALUE_TYPES[dtype], wire, inverse, divisor, out.ctypes.data)
    return out


def test_the_generic_kernels_are_always_there() -> None:
    assert KERNELS[0] == "generic"


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("dtype", numerics.FLOATS, ids=str)
class TestScan:
    def test_all_zero_and_empty_blocks_have_exponent_zero(
        self, kernels: str, dtype: np.dtype[Any]
    ) -> None:
        assert scan(kernels, np.zeros(0, dtype)) == (0, False)
        assert scan(kernels, np.full(33, -0.0, dtype)) == (0, False)

    def test_non_finite_values_are_flagged_and_do_not_count(
        self, kernels: str, dtype: np.dtype[Any]
    ) -> None:
        assert scan(kernels, np.array([1.0, np.inf], dtype)) == (128, True)
        assert scan(kernels, np.array([-np.inf, np.nan], dtype)) == (0, True)

    def test_powers_of_two_get_the_next_exponent(self, kernels: str, dtype: np.dtype[Any]) -> None:
        assert scan(kernels, np.array([-1.0], dtype))[0] == 128  # 2^1 > 1
        assert scan(kernels, np.array([0.5], dtype))[0] == 127

    def test_subnormals_are_clamped(self, kernels: str, dtype: np.dtype[Any]) -> None:
        smallest = np.array([1], BITS[dtype]).view(dtype)
        exponent = numerics.PRECISION[dtype][1] + 1
        assert scan(kernels, smallest) == (max(exponent, -95) + 127, False)


@pytest.mark.parametrize("dtype", numerics.FLOATS, ids=str)
def test_the_largest_value_has_the_largest_exponent(dtype: np.dtype[Any]) -> None:
    largest = np.array([{4: 0x7F7FFFFF, 2: 0x7F7F}[dtype.itemsize]], BITS[dtype]).view(dtype)
    if dtype == np.float16:
        largest = np.array([65504], dtype)
    expected = {np.dtype(np.float16): 16}.get(dtype, 128) + 127
    assert all(scan(kernels, largest) == (expected, False) for kernels in KERNELS)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_all_kernels_agree_with_numpy_on_random_bits(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(numerics.FLOATS))
    length = data.draw(st.integers(1, 300))
    seed = data.draw(st.integers(0, 2**32))
    workers = data.draw(st.one_of(st.integers(1, 32), st.integers(33, 1024)))
    rng = np.random.default_rng(seed)
    block = rng.integers(0, 2 ** (8 * dtype.itemsize), length, dtype=BITS[dtype]).view(dtype)
    finite = np.isfinite(block.astype(np.float32))
    expected = (numerics.block_exponent(block), not finite.all())
    assert all(scan(kernels, block) == expected for kernels in KERNELS)
    block = np.where(finite, block, dtype.type(0))
    # Any exponent from the block's own up may be agreed on.
    exponent = data.draw(st.integers(max(expected[0], 32), 255))
    scale = numerics.scale(exponent, workers)
    assert native.block_scale(exponent, workers) == scale
    with np.errstate(under="ignore"):
        want = np.rint(block.astype(np.float32) * scale).astype(np.int64)
    assert np.abs(want).max() * workers < 2**31
    for kernels in KERNELS:
        assert (quantise(kernels, block, float(scale)) == want).all()


@settings(max_examples=100, deadline=None)
@given(
    dtype=st.sampled_from(numerics.FLOATS),
    seed=st.integers(0, 2**32),
    length=st.integers(1, 300),
    exponent=st.integers(32, 255),
    workers=st.one_of(st.integers(1, 32), st.integers(33, 1024)),
    average=st.booleans(),
)
def test_all_kernels_dequantise_as_numpy_does(
    dtype: np.dtype[Any], seed: int, length: int, exponent: int, workers: int, average: bool
) -> None:
    sums = np.random.default_rng(seed).integers(-(2**31), 2**31, length, dtype=np.int64)
    sums >>= np.random.default_rng(seed).integers(0, 31, length)
    inverse = np.float32(1) / numerics.scale(exponent, workers)
    divisor = workers if average else 1
    with np.errstate(over="ignore", under="ignore"):
        want = sums.astype(np.float32) * inverse * (np.float32(1) / np.float32(divisor))
        want = want.astype(dtype)
    for kernels in KERNELS:
        got = dequantise(kernels, sums.astype(np.int32), dtype, float(inverse), divisor)
        assert numerics.same_bits(got, want), kernels


@pytest.mark.parametrize("kernels", KERNELS)
def test_every_half_converts_exactly_and_back(kernels: str) -> None:
    """All finite halves: scaled to integers and back, each is itself (zeros lose their sign)."""
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    small = halves[np.abs(halves) < 2.0**6]  # 31 bits from 2^-24 up
    scale = 2.0**24
    integers = quantise(kernels, small, scale)
    assert (integers == small.astype(np.float64) * scale).all()
    back = dequantise(kernels, integers, np.dtype(np.float16), 1 / scale, 1)
    assert (back == small).all()
    large = halves[np.abs(halves) >= 1]
    back = dequantise(kernels, quantise(kernels, large, 2.0**10), np.dtype(np.float16), 2.0**-10, 1)
    assert (back == large).all()


@pytest.mark.parametrize("length", [*range(40), 255, 256, 257])
def test_halves_of_any_number_convert_and_nothing_beyond_is_written(length: int) -> None:
    """Conversion instructions take whole vectors; the rest goes another way."""
    halves = np.linspace(-3, 3, length, dtype=np.float16)
    for kernels in KERNELS:
        integers = quantise(kernels, halves, 2.0**24)
        assert integers.tolist() == (halves.astype(np.float64) * 2.0**24).tolist()
        out = np.full(length + 32, 9, np.float16)
        wire = integers.astype(">i4").tobytes()
        type_code = VALUE_TYPES[out.dtype]
        native.dequantize(kernels, type_code, wire, 2.0**-24, 1, out.ctypes.data)
        assert (out[:length] == halves).all()
        assert (out[length:] == 9).all()


def test_every_half_is_quantised_alike_at_every_scale() -> None:
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    for power in range(-8, 55):
        scale = np.float32(2.0**power)
        fits = np.abs(halves.astype(np.float64)) * 2.0**power < 2**31
        want = np.rint(halves[fits].astype(np.float32) * scale).astype(np.int32)
        for kernels in KERNELS:
            assert (quantise(kernels, halves[fits], float(scale)) == want).all(), (kernels, power)


def test_results_round_to_halves_as_numpy_does_at_every_boundary() -> None:
    """Every half, the middle between it and the next, and the float32 on either side of that."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = halves + np.diff(halves, append=np.float32(65536)) / 2
    below = np.nextafter(middles, np.float32(0))
    above = np.nextafter(middles, np.float32(np.inf))
    values = np.concatenate([halves, middles, below, above, np.float32(65536) * halves])
    fraction, power = np.frexp(values)
    sums = (fraction * np.float32(2**24)).astype(np.int32)  # exact: a float32 has 24 bits
    for exponent in np.unique(power):
        chosen = power == exponent
        both = np.concatenate([sums[chosen], -sums[chosen]])
        with np.errstate(over="ignore"):
            want = np.concatenate([values[chosen], -values[chosen]]).astype(np.float16)
        inverse = float(2.0 ** (exponent - 24.0))
        for kernels in KERNELS:
            got = dequantise(kernels, both, want.dtype, inverse, 1)
            # -0 has no sum of its own: sum 0 is +0.
            assert numerics.same_bits(got, np.where(both == 0, np.float16(0), want)), kernels


@pytest.mark.parametrize("kernels", KERNELS)
def test_int32_is_only_byte_swapped(kernels: str) -> None:
    block = np.array([0, 1, -1, 2**31 - 1, -(2**31), 0x01020304] * 7, np.int32)
    assert (quantise(kernels, block, 1.0) == block).all()
    assert (dequantise(kernels, block, block.dtype, 1.0, 1) == block).all()


@pytest.mark.parametrize("kernels", KERNELS)
def test_int32_average_truncates_for_every_divisor(kernels: str) -> None:
    edges = [-(2**31), -(2**31) + 1, -33, -32, -1, 0, 1, 31, 32, 33, 2**31 - 1]
    random = np.random.default_rng(0).integers(-(2**31), 2**31, 500).tolist()
    sums = np.array(edges + random, np.int32)
    for divisor in range(2, 33):
        wide = sums.astype(np.int64)
        want = np.sign(wide) * (np.abs(wide) // divisor)
        assert (dequantise(kernels, sums, sums.dtype, 1.0, divisor) == want).all()
