"""What each worker does in test_resize.py."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 40
STEP_S = 0.02
"""What a step computes besides: so long that it is resized many times."""


def train(rank: int, workers: int, steps: int = STEPS) -> bytes:
    """The parameters after so many steps of plain SGD on data of each rank's own."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64))
    ddp = DistributedDataParallel(model, bucket_cap_mb=0.02)  # several all-reduces a step
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.05)
    data = torch.Generator().manual_seed(100 + rank)
    for _ in range(steps):
        optimizer.zero_grad()
        batch = torch.randn(32, 64, generator=data)
        nn.functional.mse_loss(ddp(batch), batch).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        time.sleep(STEP_S)
    counted = torch.tensor([rank], dtype=torch.int32)
    dist.all_reduce(counted)
    assert int(counted) == workers * (workers - 1) // 2
    return b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
