"""What each worker does in test_wire.py."""

from __future__ import annotations

import os

import numpy as np
import torch
import torch.distributed as dist

import ina.torch
from ina.host.errors import RanksDifferError
from ina.protocol.coding import CODINGS
from ina.testing import numerics, packed

WORDS = 256
"""Of a packet."""
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int32)


def random(rank: int, dtype: torch.dtype, elems: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1000 * rank + elems)
    if dtype == torch.int32:
        return torch.randint(-1000, 1000, (elems,), dtype=dtype, generator=generator)
    return torch.randn(elems, generator=generator).to(dtype)


def as_numpy(tensor: torch.Tensor) -> numerics.Array:
    if tensor.dtype != torch.bfloat16:
        return tensor.numpy()
    return tensor.view(torch.int16).numpy().view(numerics.FLOATS[2])


def packed_sums(rank: int, workers: int) -> tuple[list[str], int]:
    """Sums of all dtypes by INA_WIRE; those that are not what they must be, and chunks."""
    coding = CODINGS[os.environ["INA_WIRE"]]
    wrong, number = [], 0
    for dtype in DTYPES:
        for elems, op in (
            (5, dist.ReduceOp.SUM),
            (5003, dist.ReduceOp.SUM),
            (5003, dist.ReduceOp.AVG),
        ):
            if op == dist.ReduceOp.AVG and dtype == torch.int32:
                continue
            number += 1
            mine = random(rank, dtype, elems)
            dist.all_reduce(mine, op=op)
            parts = [as_numpy(random(of, dtype, elems)) for of in range(workers)]
            name = "avg" if op == dist.ReduceOp.AVG else "sum"
            right = packed.all_reduce(parts, name, WORDS, coding, number)
            if not numerics.same_bits(as_numpy(mine), np.asarray(right)):
                wrong.append(f"{name} of {dtype}[{elems}]")
    return wrong, ina.torch.stats().session["chunks_done"]


def differ(rank: int, workers: int) -> str:
    """Rank 1's group has another wire."""
    group = dist.new_group(
        backend="ina", pg_options=ina.torch.Options(wire="16" if rank == 1 else "8")
    )
    try:
        dist.all_reduce(torch.ones(5), group=group)
    except RanksDifferError as error:
        return str(error)
    return ""
