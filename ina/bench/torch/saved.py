"""Tensors that ``torch.save`` wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


def not_zero(path: Path) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Of each tensor, alone or in a list, tuple or mapping: its dtype, which values are not zero.

    Sparse ones as if they were dense. Raises what ``torch.load`` does, which runs no code of it.
    """
    for tensor in _tensors(torch.load(path, map_location="cpu", weights_only=True)):
        there = (tensor.reshape(-1) != 0).numpy()
        yield str(tensor.dtype).removeprefix("torch."), there


def _tensors(of: Any) -> Iterator[torch.Tensor]:
    if isinstance(of, torch.Tensor):
        yield of.detach().to_dense() if of.is_sparse else of.detach()
    elif isinstance(of, Mapping | list | tuple):
        for one in of.values() if isinstance(of, Mapping) else of:
            yield from _tensors(one)
