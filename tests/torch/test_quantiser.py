"""The quantiser in torch operations gives the native kernels' bits, on CPU tensors."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ina._native import quantize as native
from ina.protocol.collective import Reduction
from ina.protocol.spec import ValueType
from ina.torch.cuda import quantiser

_TYPES = {
    torch.float32: ValueType.FLOAT32,
    torch.float16: ValueType.FLOAT16,
    torch.bfloat16: ValueType.BFLOAT16,
}
_BITS = {torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}


def _bits(tensor: torch.Tensor) -> list[int]:
    numbers: list[int] = tensor.contiguous().view(_BITS[tensor.dtype]).tolist()
    return numbers


@st.composite
def _tensors(draw: st.DrawFn) -> torch.Tensor:
    """Random bit patterns: subnormals, infinities and NaN of every kind come up."""
    dtype = draw(st.sampled_from(list(_TYPES)))
    bits = 8 * dtype.itemsize
    number = st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if draw(st.booleans()):  # mostly finite: exponents of one region
        low = draw(st.integers(0, 2 ** (bits - 1) - 2**8))
        number = st.integers(low, low + 2**8 - 1) | st.just(0) | st.just(-(2 ** (bits - 1)))
    numbers = draw(st.lists(number, min_size=1, max_size=40))
    return torch.tensor(numbers, dtype=_BITS[dtype]).view(dtype)


def _native_code(block: torch.Tensor) -> int:
    kernels = native.kernel_names()[-1]
    exponent, not_finite = native.scan(
        kernels, _TYPES[block.dtype], block.data_ptr(), block.numel()
    )
    return 255 if not_finite else exponent - 31 if exponent else 0


@settings(max_examples=300, deadline=None)
@given(_tensors(), st.integers(1, 8))
def test_codes_are_the_native_exponents(values: torch.Tensor, block_elems: int) -> None:
    codes = quantiser.block_codes(values, block_elems)
    assert codes.dtype == torch.uint8
    blocks = torch.split(values, block_elems)
    assert codes.tolist() == [_native_code(block.contiguous()) for block in blocks]


@settings(max_examples=300, deadline=None)
@given(_tensors(), st.integers(1, 8), st.integers(1, 32) | st.integers(33, 1024), st.booleans())
def test_quantised_and_back_as_the_native_kernels(
    values: torch.Tensor, block_elems: int, workers: int, average: bool
) -> None:
    """The sum of ``workers`` equal contributions, through both."""
    codes = quantiser.block_codes(values, block_elems)
    numbers = quantiser.quantise(values, codes, block_elems, workers)
    assert numbers.dtype == torch.int32
    assert numbers.shape == values.shape
    sums = (numbers.long() * workers).to(torch.int32)
    assert torch.equal(sums.long(), numbers.long() * workers), "overflow"
    result = quantiser.dequantise(
        sums, codes, block_elems, workers, op=Reduction(average), dtype=values.dtype
    )
    kernels, value_type = native.kernel_names()[-1], _TYPES[values.dtype]
    for index, code in enumerate(codes.tolist()):
        part = slice(index * block_elems, (index + 1) * block_elems)
        block, got = values[part].contiguous(), result[part]
        if code == 255:  # the native code has these bits as constants
            quiet = {torch.float32: 0x7FC00000, torch.float16: 0x7E00, torch.bfloat16: 0x7FC0}
            assert _bits(got) == [quiet[values.dtype]] * got.numel()
            continue
        if code == 0:
            assert _bits(got) == [0] * got.numel()
            continue
        scale = native.block_scale(code + 31, workers)
        wire = native.quantize(kernels, value_type, block.data_ptr(), block.numel(), scale)
        wanted = [
            int.from_bytes(wire[i : i + 4], "big", signed=True) for i in range(0, len(wire), 4)
        ]
        assert numbers[part].tolist() == wanted
        wire = b"".join((q * workers).to_bytes(4, "big", signed=True) for q in wanted)
        out = torch.empty_like(block)
        divisor = workers if average else 1
        native.dequantize(kernels, value_type, wire, 1 / scale, divisor, out.data_ptr())
        assert _bits(got) == _bits(out)


@pytest.mark.parametrize("dtype", list(_TYPES))
def test_empty(dtype: torch.dtype) -> None:
    values = torch.empty(0, dtype=dtype)
    codes = quantiser.block_codes(values, 256)
    assert codes.numel() == 0
    assert quantiser.quantise(values, codes, 256, 4).numel() == 0


def test_largest_code_is_the_largest_exponent() -> None:
    """float32's maximum is below 2^128; its code stays apart from that of Inf."""
    largest = torch.tensor([torch.finfo(torch.float32).max])
    assert quantiser.block_codes(largest, 1).tolist() == [224]
    assert quantiser.block_codes(-largest.double().float() * 2, 1).tolist() == [255]
