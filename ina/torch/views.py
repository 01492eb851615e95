"""The same memory as a tensor and as a NumPy array, of the types that the network sums."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import torch

from ina.host.arrays import VALUE_TYPES as NUMPY_TYPES
from ina.host.arrays import Array
from ina.torch.paths import VALUE_TYPES

_DTYPES = {
    array_type: dtype
    for array_type, value_type in NUMPY_TYPES.items()
    for dtype, same in VALUE_TYPES.items()
    if same is value_type
}


def as_tensor(array: Array) -> torch.Tensor:
    """Of a C-contiguous array; flat. NumPy's bfloat16 is not torch's: the bytes are the same."""
    return torch.from_numpy(array.reshape(-1).view(np.uint8)).view(_DTYPES[array.dtype])


def as_array(tensor: torch.Tensor) -> Array:
    """Of a contiguous tensor in CPU memory; of the same shape."""
    tensor = tensor.detach()
    if tensor.dtype != torch.bfloat16:
        array: Array = tensor.numpy()
        return array
    return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
