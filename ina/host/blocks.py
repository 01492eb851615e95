"""The conversions between tensors and packets over a whole array, for measurements and tests."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ina.errors import InvalidInputError
from ina.extension import quantize as native
from ina.host.arrays import Array, value_type_of

Conversion = Literal["scan", "quantize", "dequantize"]


def kernels_name() -> str:
    """Of the instruction set whose kernels this processor uses: the fastest."""
    return native.kernel_names()[-1]


def convert(
    what: Conversion, array: Array, wire: NDArray[np.uint8], block_elems: int, rounds: int = 1
) -> None:
    """Scan or quantise `array` to `wire`, or dequantise back, with a scale of 1, in blocks.

    `wire`: 4 bytes for each element. To scan is to find each block's exponent. All of it is done
    `rounds` times. Raises InvalidInputError where they do not fit.
    """
    value_type = value_type_of(array.dtype)
    if not (array.flags.c_contiguous and wire.flags.c_contiguous and wire.nbytes == 4 * array.size):
        raise InvalidInputError(
            f"{array.size} elements and {wire.nbytes} bytes: want 4 for each, contiguous"
        )
    native.convert_blocks(
        what, value_type, array.ctypes.data, wire.ctypes.data, array.size, block_elems, rounds
    )


def copy(source: NDArray[np.uint8], target: NDArray[np.uint8], rounds: int) -> None:
    """The C library's memcpy of all of `source`, `rounds` times.

    Raises InvalidInputError where `target` is shorter or longer.
    """
    if not (
        source.flags.c_contiguous and target.flags.c_contiguous and source.nbytes == target.nbytes
    ):
        raise InvalidInputError(
            f"{source.nbytes} bytes to {target.nbytes}: want as many, contiguous"
        )
    native.copy_bytes(source.ctypes.data, target.ctypes.data, source.nbytes, rounds)
