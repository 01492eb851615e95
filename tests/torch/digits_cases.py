"""What workers do in test_roce.py: digits by DDP, over ina or over what its sums are to be.

Annotations are types here, not text: DDP looks at its hook's.
"""

import hashlib
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import GradBucket
from torch.nn.parallel import DistributedDataParallel

import ina.torch
from ina.testing import numerics
from tests.torch.model_cases import example

STEPS = 30
BATCH = 64


def over_ina(rank: int, workers: int) -> tuple[str, dict[str, Any]]:
    """Digest of the parameters, and the session's counters."""
    digest = trained(rank, workers, None)
    stats = ina.torch.stats()
    assert stats.fallbacks == 0
    return digest, stats.session


def by_reference_248(rank: int, workers: int) -> str:
    """Of the sums that plain UDP makes of packets of 248 values: the documented numerics."""
    return trained(rank, workers, 248)


def trained(rank: int, workers: int, values: int | None) -> str:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    digits = example("ddp_digits")
    images, labels, *_ = digits.load_data()
    net = DistributedDataParallel(digits.DigitsNet())
    if values is not None:
        net.register_comm_hook(values, reference)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for step in range(STEPS):
        first = (step * workers + rank) * BATCH % (len(images) - BATCH)
        batch = slice(first, first + BATCH)
        optimizer.zero_grad()
        torch.autograd.backward(nn.functional.cross_entropy(net(images[batch]), labels[batch]))
        optimizer.step()
    flat = torch.cat([it.detach().flatten() for it in net.parameters()])
    return hashlib.sha256(flat.numpy().tobytes()).hexdigest()


def reference(values: int, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """DDP divides before it sums; by a power of two, exactly."""
    mine = bucket.buffer() / dist.get_world_size()
    parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, mine)
    whole = numerics.all_reduce([np.asarray(part) for part in parts], "sum", values)
    done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
    done.set_result(torch.from_numpy(whole))
    return done
