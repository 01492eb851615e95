"""Block floating point in torch operations, on whatever device the tensor is.

The same numbers as ``native/host/core/quantize.cpp``, bit for bit (docs/host.md defines them): a
block of consecutive elements shares one exponent, on which the workers agree with MAX; its values
times a power of two, rounded half to even, are int32 that n workers can sum without overflow.

A block's exponent travels as one byte, its *code*: 0 for a block of zeros, 255 for one with Inf or
NaN, else the exponent + 96. The maximum of the workers' codes is the code of the sum.
"""

from __future__ import annotations

import torch

from ina.protocol.collective import Reduction

MIN_EXPONENT = -95
"""Blocks of smaller values are scaled as if they had this one; else the scale would overflow."""
_CODE_OFFSET = 96
_FIRST_ROUNDED_UP = 256
ALL_ZERO = 0
NOT_FINITE = 255


def block_codes(values: torch.Tensor, block_elems: int) -> torch.Tensor:
    """The code of each block of ``values``: uint8, shape (blocks,).

    ``values`` is 1-D, float32, float16 or bfloat16; the last block may be short.
    """
    blocks = _blocks(values.float(), block_elems)
    finite = blocks.isfinite()
    largest = torch.where(finite, blocks, 0.0).abs().amax(dim=1)
    # frexp: largest < 2^exponent, the least such exponent
    codes = torch.frexp(largest).exponent.clamp(min=MIN_EXPONENT) + _CODE_OFFSET
    codes = torch.where(largest == 0, ALL_ZERO, codes)
    return torch.where(finite.all(dim=1), codes, NOT_FINITE).to(torch.uint8)


def quantise(
    values: torch.Tensor, codes: torch.Tensor, block_elems: int, workers: int
) -> torch.Tensor:
    """``values`` as int32 of the same shape, scaled for a sum over ``workers``.

    ``codes`` are the agreed ones of :func:`block_codes`. Blocks whose code is 0 or 255 become 0:
    their result does not depend on what is summed.
    """
    elems = values.numel()
    blocks = _blocks(values.float(), block_elems)
    summed = (codes != ALL_ZERO) & (codes != NOT_FINITE)
    scaled = blocks * _power_of_two(_scale_exponents(codes, workers))
    scaled = torch.where(summed.unsqueeze(1), scaled.round(), 0.0)
    return scaled.to(torch.int32).reshape(-1)[:elems]


def dequantise(
    sums: torch.Tensor,
    codes: torch.Tensor,
    block_elems: int,
    workers: int,
    *,
    op: Reduction,
    dtype: torch.dtype,
) -> torch.Tensor:
    """The float result of the summed int32: 1-D of ``dtype``, of an average divided."""
    elems = sums.numel()
    blocks = _blocks(sums, block_elems).float()
    result = blocks * _power_of_two(-_scale_exponents(codes, workers))
    if op is Reduction.AVERAGE:
        result = result * torch.tensor(1.0 / workers, dtype=torch.float32, device=sums.device)
    # After the conversion: it does not keep a NaN's bits the same on every device.
    converted = result.to(dtype).masked_fill_((codes == NOT_FINITE).unsqueeze(1), torch.nan)
    return converted.reshape(-1)[:elems]


def _blocks(values: torch.Tensor, block_elems: int) -> torch.Tensor:
    """Shape (blocks, block_elems), the last one filled up with zeros."""
    missing = -values.numel() % block_elems
    return torch.nn.functional.pad(values, (0, missing)).view(-1, block_elems)


def _scale_exponents(codes: torch.Tensor, workers: int) -> torch.Tensor:
    """The power of two that each block is multiplied by, shape (blocks, 1); 0 where nothing is."""
    # log2, rounded up; and one more where rounded values may be a power of two, each of them.
    headroom_bits = (workers - 1 if workers < _FIRST_ROUNDED_UP else workers).bit_length()
    exponents = 31 - headroom_bits - (codes.to(torch.int32) - _CODE_OFFSET)
    summed = (codes != ALL_ZERO) & (codes != NOT_FINITE)
    return torch.where(summed, exponents, 0).unsqueeze(1)


def _power_of_two(exponents: torch.Tensor) -> torch.Tensor:
    """2 to the exponents, in -126 .. 127, as float32: made of its bits, so exact everywhere."""
    return ((exponents + 127) << 23).view(torch.float32)
