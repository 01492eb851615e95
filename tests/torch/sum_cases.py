"""What each worker does in test_sums.py: sums of every dtype and length, checked in the worker."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist

import ina.torch
from tests.torch.bound import sum_and_bound

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
VALUES_PER_PACKET = 1024  # of the embedded switch where all workers must be on its host
# The last has more packets than the job has slots.
LENGTHS = (0, 1, *range(VALUES_PER_PACKET - 1, VALUES_PER_PACKET + 2), 300_003)


@dataclass(frozen=True)
class Sum:
    """One all_reduce as one rank saw it."""

    dtype: str
    elems: int
    op: str
    digest: str  # of the result's bytes: equal on all ranks
    wrong_elems: int  # int32: unlike Gloo's; floats: outside the bound of the float64 sum
    worst: float  # largest error as a share of the bound, floats


def all_sums(rank: int, workers: int) -> tuple[list[Sum], ina.torch.GroupStats]:
    """Every dtype and length, SUM and AVG."""
    gloo = dist.new_group(backend="gloo")
    sums = [_integers(rank, elems, gloo) for elems in LENGTHS]
    sums += [
        _floats(rank, workers, elems, dtype, op)
        for dtype in FLOATS
        for elems in LENGTHS
        for op in ("SUM", "AVG")
        if op == "SUM" or elems < 100_000
    ]
    return sums, ina.torch.stats()


def _integers(rank: int, elems: int, gloo: dist.ProcessGroup) -> Sum:
    generator = torch.Generator().manual_seed(1000 * rank + elems)
    # The whole range: sums wrap, and must wrap as Gloo's do.
    mine = torch.randint(-(2**31), 2**31, (elems,), dtype=torch.int32, generator=generator)
    theirs = mine.clone()
    dist.all_reduce(mine)
    dist.all_reduce(theirs, group=gloo)
    return Sum("int32", elems, "SUM", _digest(mine), int((mine != theirs).sum()), 0.0)


def _floats(rank: int, workers: int, elems: int, dtype: torch.dtype, op: str) -> Sum:
    name = str(dtype).removeprefix("torch.")
    inputs = [_random(of, elems, dtype) for of in range(workers)]
    mine = inputs[rank].clone()
    dist.all_reduce(mine, getattr(dist.ReduceOp, op))
    exact, bound = sum_and_bound(
        np.stack([tensor.double().numpy() for tensor in inputs]), VALUES_PER_PACKET, name
    )
    result = mine.double().numpy()
    if op == "AVG":
        # 1/n is rounded to float32 and the product again: two more roundings of 2^-24.
        result, bound = result * workers, bound + np.abs(exact) * 2.0**-22
        if dtype != torch.float32:
            bound = bound * 2  # the last place of sum/n can be twice that of the sum, relatively
    error = np.abs(result - exact)
    worst = float((error / np.maximum(bound, 1e-300)).max()) if elems else 0.0
    return Sum(name, elems, op, _digest(mine), int((error > bound).sum()), worst)


def _random(rank: int, elems: int, dtype: torch.dtype) -> torch.Tensor:
    """Normal numbers whose size changes from one block to the next by factors up to 2^8."""
    generator = torch.Generator().manual_seed(77 * rank + elems)
    numbers = torch.randn(elems, generator=generator)
    blocks = torch.randint(-4, 5, (elems // VALUES_PER_PACKET + 1,), generator=generator)
    sizes = torch.exp2(blocks.float()).repeat_interleave(VALUES_PER_PACKET)[:elems]
    return (numbers * sizes).to(dtype)


def _digest(tensor: torch.Tensor) -> str:
    return hashlib.sha256(tensor.view(torch.uint8).numpy().tobytes()).hexdigest()
