"""Which NumPy arrays can be reduced, and what they are on the wire."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ina.host.errors import InvalidArrayError, UnsupportedDtypeError, UnsupportedOpError
from ina.protocol.collective import REDUCTIONS, Reduction
from ina.protocol.spec import ValueType

Array = NDArray[Any]

VALUE_TYPES: dict[np.dtype[Any], ValueType] = {
    np.dtype(np.int32): ValueType.INT32,
    np.dtype(np.float32): ValueType.FLOAT32,
    np.dtype(np.float16): ValueType.FLOAT16,
    np.dtype(ml_dtypes.bfloat16): ValueType.BFLOAT16,
}


_DTYPES = {value_type: dtype for dtype, value_type in VALUE_TYPES.items()}
_DTYPES[ValueType.BYTES] = np.dtype(np.uint8)


def dtype_of(value_type: int) -> np.dtype[Any]:
    """Return that of a tensor whose values are so on the wire."""
    found = ValueType(value_type)
    return _DTYPES[found if found is ValueType.BYTES else found.element]


def value_type_of(dtype: np.dtype[Any]) -> ValueType:
    """Return the wire's type of a dtype; raise UnsupportedDtypeError for any other."""
    found = VALUE_TYPES.get(dtype)
    if found is None or not dtype.isnative:
        names = ", ".join(str(known) for known in VALUE_TYPES)
        raise UnsupportedDtypeError(f"dtype {dtype}: supported are native {names}")
    return found


def reduction(op: str) -> Reduction:
    """Return what "sum" or "avg" stands for; raise UnsupportedOpError otherwise."""
    found = REDUCTIONS.get(op)
    if found is None:
        raise UnsupportedOpError(f"op {op!r}: supported are {', '.join(REDUCTIONS)}")
    return found


def check_input(array: Array) -> ValueType:
    """Raise unless the array is a C-contiguous NumPy array of a supported dtype."""
    if not isinstance(array, np.ndarray):
        raise InvalidArrayError(f"array: a numpy.ndarray is needed, got {type(array).__name__}")
    value_type = value_type_of(array.dtype)
    if not array.flags.c_contiguous:
        raise InvalidArrayError(f"array of shape {array.shape}: must be C-contiguous")
    return value_type


def check_bytes(array: Array, *, writes: bool = False) -> None:
    """Raise unless the array is C-contiguous and has bytes that mean something elsewhere.

    `writes`: and may be written to.
    """
    if not isinstance(array, np.ndarray):
        raise InvalidArrayError(f"array: a numpy.ndarray is needed, got {type(array).__name__}")
    if array.dtype.hasobject:
        raise UnsupportedDtypeError(f"dtype {array.dtype}: objects are of this process alone")
    if not array.flags.c_contiguous:
        raise InvalidArrayError(f"array of shape {array.shape}: must be C-contiguous")
    if writes and not array.flags.writeable:
        raise InvalidArrayError("array: must be writeable")


def parts_of(array: Array, ranks: int) -> Array:
    """A view of shape (ranks, first dimension / ranks, ...), a part for each rank.

    Raises InvalidArrayError: it has no such parts.
    """
    if array.ndim == 0 or array.shape[0] % ranks:
        raise InvalidArrayError(
            f"array of shape {array.shape}: its first dimension must be {ranks} parts of equal"
            " length"
        )
    return array.reshape(ranks, array.shape[0] // ranks, *array.shape[1:])


def prepare_output(array: Array, out: Array | None) -> Array:
    """Return where the result goes: `out` after checking it against `array`, or a new array."""
    if out is None:
        return np.empty_like(array, order="C", subok=False)
    _check_output(out, array.dtype, array.shape)
    if out.ctypes.data != array.ctypes.data and np.may_share_memory(out, array):
        raise InvalidArrayError("out: overlaps the input; it must be the same memory or apart")
    return out


def prepare_part(array: Array, part: Array, out: Array | None) -> Array:
    """The same of what is as large as one `part` of `array`."""
    if out is None:
        return np.empty_like(part, order="C", subok=False)
    _check_output(out, part.dtype, part.shape)
    if np.may_share_memory(out, array):
        raise InvalidArrayError("out: overlaps the input; it must be apart")
    return out


def prepare_gathered(array: Array, ranks: int, rank: int, out: Array | None) -> Array:
    """The same of what all ranks' arrays have room in, of which the own part may be `array`."""
    shape = (ranks, *array.shape)
    if out is None:
        return np.empty(shape, array.dtype)
    _check_output(out, array.dtype, shape)
    is_own_part = array.ctypes.data == out.ctypes.data + rank * array.nbytes
    if not is_own_part and np.may_share_memory(out, array):
        raise InvalidArrayError("out: overlaps the input; it must be its own part's or apart")
    return out


def _check_output(out: Array, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    if not isinstance(out, np.ndarray):
        raise InvalidArrayError(f"out: a numpy.ndarray is needed, got {type(out).__name__}")
    if out.dtype != dtype or out.shape != shape:
        raise InvalidArrayError(f"out: is {out.dtype} {out.shape}, must be {dtype} {shape}")
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise InvalidArrayError("out: must be C-contiguous and writeable")
