"""What of a tensor goes into a sparse sum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch

from ina.host.arrays import Array
from ina.host.sparse import Blocks, BlockSum, Part
from ina.host.sparse.kernels import Numbers
from ina.host.sparse.parts import DENSE_TENTHS
from ina.torch.views import as_array

Began = Callable[[BlockSum[Any]], object]


class SparsePart(Part[Any], Protocol):
    """One rank's, of one all-reduce; what it counts of it."""

    @property
    def blocks(self) -> int:
        """Of the tensor."""

    @property
    def union(self) -> int:
        """Of those, not zero on some rank; once the sum is there."""

    @property
    def elems(self) -> int:
        """That were summed."""

    def began(self, one: BlockSum[Any]) -> None:
        """Its sum is under way."""


class DenseBlocks(Blocks):
    """The blocks of a dense tensor, in place."""

    def __init__(self, tensor: torch.Tensor, block_elems: int, began: Began) -> None:
        """``tensor``: contiguous, in CPU memory, of a dtype that the network sums."""
        array = as_array(tensor)
        super().__init__(array, block_elems, array)
        self._elems, self._elems_of_one = tensor.numel(), block_elems
        self._began = began
        self.blocks = int(self.marks.size)
        self.union = 0

    @property
    def elems(self) -> int:
        """See SparsePart."""
        if 10 * self.union >= DENSE_TENTHS * self.blocks:
            return self._elems
        return min(self.union * self._elems_of_one, self._elems)

    def values(self, union: Numbers) -> tuple[Array, Array]:
        """See Part."""
        self.union = int(union.size)
        return super().values(union)

    def began(self, one: BlockSum[Any]) -> None:
        """See SparsePart."""
        self._began(one)
