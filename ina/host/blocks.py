"""The conversions between tensors and packets over a whole array, for measurements and tests."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ina._native import host as native
from ina.errors import InvalidInputError
from ina.host.arrays import Array, value_type_of

Conversion = Literal["scan", "quantize", "dequantize"]


def kernels_name() -> str:
    """Of the instruction set whose kernels this processor uses: the fastest."""
    return native.kernel_names()[-1]


def convert(what: Conversion, array: Array, wire: NDArray[np.uint8], block_elems: int) -> None:
    """Scan or quantise `array` to `wire`, or dequantise back, with a scale of 1, in blocks.

    `wire`: 4 bytes for each element. To scan is to find each block's exponent. Raises
    InvalidInputError where they do not fit.
    """
    value_type = value_type_of(array.dtype)
    if not (array.flags.c_contiguous and wire.flags.c_contiguous and wire.nbytes == 4 * array.size):
        raise InvalidInputError(
            f"{array.size} elements and {wire.nbytes} bytes: want 4 for each, contiguous"
        )
    native.convert_blocks(
        what, value_type, array.ctypes.data, wire.ctypes.data, array.size, block_elems
    )
