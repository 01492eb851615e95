"""A collective's tensors on one rank: what goes in, what has to come out, how it is called."""

from __future__ import annotations

import time
from typing import Any

import torch
import torch.distributed as dist

from ina.bench.collective_kinds import ROOT, SizedCollective

# The second names are torch's before 2.13, which has them with a warning.
_reduce_scatter: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
_all_gather: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_STAGGER_S = 0.002
"""Between one rank and the next, where all come to a checked barrier."""


class Exchange:
    """One collective with tensors of its own for each of ``copies`` calls, as a training step has.

    Values are small integers, whose sum the dtype holds exactly.
    """

    def __init__(self, case: SizedCollective, dtype: torch.dtype, copies: int = 1) -> None:
        self._case = case
        self._rank = dist.get_rank()
        kind, count, ranks = case.kind, case.count, case.workers
        self._numbers = torch.arange(count, dtype=torch.int32)
        self._modulus = exact_integers(dtype) // (ranks if kind.is_summed else 1)
        self._dtype = dtype
        if kind.has_parts and kind.is_summed:
            self._values = torch.cat([self._of(self._rank + part) for part in range(ranks)])
        else:
            self._values = self._of(self._rank)
        self._into = [self._values.clone() for _ in range(copies)]
        self._out = self._into
        if kind.has_parts:
            elems = count if kind.is_summed else count * ranks
            self._out = [torch.zeros(elems, dtype=dtype) for _ in range(copies)]

    def _of(self, number: int) -> torch.Tensor:
        """A tensor or a part: each number has another."""
        return ((self._numbers + 1 + number) % self._modulus).to(self._dtype)

    def fill(self) -> None:
        """Sets all that goes in, and forgets what came out."""
        for tensor in self._into:
            tensor.copy_(self._values)
        if self._out is not self._into:
            for tensor in self._out:
                tensor.zero_()

    def call(self, copy: int, group: Any) -> None:
        """Once, with the tensors of that number."""
        tensor, out = self._into[copy], self._out[copy]
        name = self._case.name
        if name == "all_reduce":
            dist.all_reduce(tensor, group=group)
        elif name == "reduce_scatter":
            _reduce_scatter(out, tensor, group=group)
        elif name == "all_gather":
            _all_gather(out, tensor, group=group)
        elif name == "broadcast":
            dist.broadcast(tensor, ROOT, group=group)
        elif name == "reduce":
            dist.reduce(tensor, ROOT, group=group)
        else:
            dist.barrier(group=group)

    def wrong(self, group: Any, gloo: Any, spoil: int) -> int:
        """Values that a call brings to this rank and that are not what they must be.

        Of a barrier 1, if this rank left before all had come. ``spoil``: so many values are made
        wrong before; a barrier's end is then told too early.
        """
        if self._case.name == "barrier":
            return self._left_early(group, gloo, spoil)
        self.fill()
        self.call(0, group)
        found = self._out[0]
        found[:spoil] += 1
        if self._case.name == "reduce" and self._rank != ROOT:
            return 0  # nobody says what it has
        return int((found != self._wanted()).sum())

    def _wanted(self) -> torch.Tensor:
        kind, ranks = self._case.kind, range(self._case.workers)
        if not kind.is_summed:
            return (
                torch.cat([self._of(rank) for rank in ranks]) if kind.has_parts else self._of(ROOT)
            )
        own = self._rank if kind.has_parts else 0
        total = torch.zeros(self._case.count)
        for rank in ranks:
            total += (self._numbers + 1 + rank + own) % self._modulus
        return total.to(self._dtype)

    def _left_early(self, group: Any, gloo: Any, spoil: int) -> int:
        """By the clock that all processes of a machine share."""
        dist.barrier(group=gloo)
        time.sleep(_STAGGER_S * self._rank)
        came_ns = torch.tensor([time.monotonic_ns()])
        dist.barrier(group=group)
        left_ns = time.monotonic_ns()
        dist.all_reduce(came_ns, dist.ReduceOp.MAX, group=gloo)
        if spoil:
            left_ns = int(came_ns.item()) - 1
        return int(left_ns < int(came_ns.item()))


def exact_integers(dtype: torch.dtype) -> int:
    """``dtype`` holds every integer up to this; at most float32's, in which sums are counted."""
    return round(2 / torch.finfo(dtype).eps) if dtype.is_floating_point else 1 << 24
