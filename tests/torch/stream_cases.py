"""What each worker does in test_stream.py: sums of tensors with blocks of zeros."""

from __future__ import annotations

import hashlib
import os

import torch
import torch.distributed as dist

import ina.torch
from ina.torch import GroupStats

DTYPES = (torch.int32, torch.float32, torch.float16)
DENSITIES = (0.0, 0.03, 1.0)


def all_sums(rank: int, workers: int) -> tuple[list[str], str, GroupStats]:
    """Those that are wrong, a digest of all, and the counters."""
    wrong, digest = [], hashlib.sha256()
    block = int(os.environ.get("INA_VALUES", "1024")) - 1
    # Less than a block, just one, and more of them than the job has lanes.
    lengths = (0, 1, *range(block - 1, block + 3), 300 * block + 3)
    for dtype in DTYPES:
        for elems in lengths:
            for density in DENSITIES if elems > 1 else (1.0,):
                for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
                    if dtype == torch.int32 and op == dist.ReduceOp.AVG:
                        continue
                    parts = [_sparse(of, elems, dtype, density) for of in range(workers)]
                    mine = parts[rank].clone()
                    dist.all_reduce(mine, op=op)
                    divisor = workers if op == dist.ReduceOp.AVG else 1
                    exact = (torch.stack(parts).double().sum(0) / divisor).to(dtype)
                    if not torch.equal(mine, exact):
                        wrong.append(f"{op} of {elems} {dtype}, density {density}")
                    digest.update(mine.numpy().tobytes())
    return wrong, digest.hexdigest(), ina.torch.stats()


def _sparse(rank: int, elems: int, dtype: torch.dtype, density: float) -> torch.Tensor:
    """Whole numbers, small and even enough that each type has their sums and averages exactly."""
    generator = torch.Generator().manual_seed(1000 * rank + elems)
    values = 8 * torch.randint(-50, 50, (elems,), generator=generator)
    kept = torch.rand(-(-elems // 256), generator=generator) < density
    return (values * kept.repeat_interleave(256)[:elems]).to(dtype)
