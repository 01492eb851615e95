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


def prepare_output(array: Array, out: Array | None) -> Array:
    """Return where the result goes: `out` after checking it against `array`, or a new array."""
    if out is None:
        return np.empty_like(array, order="C", subok=False)
    if not isinstance(out, np.ndarray):
        raise InvalidArrayError(f"out: a numpy.ndarray is needed, got {type(out).__name__}")
    if out.dtype != array.dtype or out.shape != array.shape:
        raise InvalidArrayError(
            f"out: is {out.dtype} {out.shape}, must be {array.dtype} {array.shape}"
        )
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise InvalidArrayError("out: must be C-contiguous and writeable")
    if out.ctypes.data != array.ctypes.data and np.may_share_memory(out, array):
        raise InvalidArrayError("out: overlaps the input; it must be the same memory or apart")
    return out
