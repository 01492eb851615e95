"""Sparse COO tensors in an all-reduce: their rows are the blocks of which ranks find the union."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from torch._C._distributed_c10d import Store

from ina.host.arrays import Array
from ina.host.errors import RanksDifferError
from ina.host.sparse import BlockSum, kernels
from ina.host.sparse.kernels import Numbers
from ina.host.turns import Sum
from ina.protocol.collective import Reduction
from ina.torch.views import as_array, as_tensor

_DIGEST_BITS = 32
_TELL_TIMEOUT = timedelta(seconds=2)


class CooRows:
    """One rank's; a :class:`ina.torch.parts.SparsePart`.

    A row is what one index of all sparse dimensions has. Behind the marks of rows there are two for
    each bit of a digest of the tensor's kind, of which each rank sets one: if ranks differ in it,
    more are set in their union, and all ranks see that alike.
    """

    def __init__(self, tensor: torch.Tensor, op: Reduction) -> None:
        """``tensor``: in CPU memory, of a dtype that the network sums, with any number of rows."""
        coalesced = tensor.detach().coalesce()
        self._shape, self._sparse_dim = tuple(tensor.shape), tensor.sparse_dim()
        self.count = math.prod(self._shape[: self._sparse_dim])
        indices = coalesced.indices().numpy()
        sizes = self._shape[: self._sparse_dim]
        numbers = np.ravel_multi_index(tuple(indices), sizes) if indices.size else indices[0]
        self._numbers: Numbers = np.ascontiguousarray(numbers, dtype=np.int64)
        self._rows: Array = as_array(coalesced.values().contiguous())
        self._sums = self._rows
        self.dtype = self._rows.dtype
        self.own = int(self._numbers.size)
        self.blocks, self.union = self.count, 0
        self.summed: torch.Tensor | None = None
        """Coalesced, of all rows that some rank has; once the sum is there."""
        self.kind = f"{op.name} of {kind_of(tensor)}"
        self._digest = _digest(self.kind) + self.count
        self.marks = np.zeros(self.count + 2 * _DIGEST_BITS, np.uint8)
        self.marks[self._numbers] = 1
        self.marks[self._digest] = 1

    def values(self, union: Numbers) -> tuple[Array, Array]:
        """See Part. Raises RanksDifferError, on all ranks."""
        rows = union[: np.searchsorted(union, self.count)]
        if union.size - rows.size != _DIGEST_BITS:
            raise RanksDifferError(f"this rank has a {self.kind}, others have another")
        self.union = int(rows.size)
        self._sums = kernels.spread_rows(self._rows, self._numbers, rows)
        return self._sums, self._sums

    @property
    def elems(self) -> int:
        """See SparsePart."""
        return int(self._sums.size)

    def began(self, one: BlockSum[Any]) -> None:
        """See SparsePart."""

    def result(self, union: Numbers) -> None:
        """See Part."""
        rows = union[: self._sums.shape[0]]
        sizes = self._shape[: self._sparse_dim]
        indices = (
            np.stack(np.unravel_index(rows, sizes)) if rows.size else np.zeros((len(sizes), 0))
        )
        self.summed = torch.sparse_coo_tensor(
            torch.from_numpy(indices.astype(np.int64, copy=False)),
            as_tensor(self._sums).view(self._sums.shape),
            self._shape,
            is_coalesced=True,
            check_invariants=False,
        )


def kind_of(tensor: torch.Tensor) -> str:
    """What must be the same on all ranks: ``sparse float32 (10, 3), sparse in 1 dimension``."""
    dimensions = "dimension" if tensor.sparse_dim() == 1 else "dimensions"
    return (
        f"sparse {str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}, sparse in"
        f" {tensor.sparse_dim()} {dimensions}"
    )


def _digest(kind: str) -> Numbers:
    """Which of two marks for each bit, in their order."""
    digest = zlib.crc32(kind.encode())
    return np.array([2 * bit + (digest >> bit & 1) for bit in range(_DIGEST_BITS)], np.int64)


class Compared:
    """A sum of sparse tensors; says of ranks that differ what each of them has."""

    def __init__(
        self, one: Sum[object], explain: Callable[[RanksDifferError], RanksDifferError]
    ) -> None:
        self._sum, self._explain = one, explain
        self._error: RanksDifferError | None = None

    def add_done_callback(self, function: Callable[[Any], object]) -> None:
        """See Sum."""
        self._sum.add_done_callback(lambda _: function(self))

    def done(self) -> bool:
        """See Sum."""
        return self._sum.done()

    def wait(self) -> object:
        """See Sum."""
        try:
            return self._sum.wait()
        except RanksDifferError as error:
            if self._error is None:
                self._error = self._explain(error)
            raise self._error from None


def told_apart(store: Store, number: int, rank: int, ranks: int, kind: str) -> list[str]:
    """What each rank has, where all have found that they differ in their sparse sum ``number``.

    Raises RuntimeError if one does not say it in time.
    """
    names = [f"ina/sparse/{number}/{one}" for one in range(ranks)]
    store.set(names[rank], kind)
    store.wait(names, _TELL_TIMEOUT)
    return [store.get(name).decode() for name in names]
