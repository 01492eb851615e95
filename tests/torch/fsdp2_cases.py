"""What each worker does in test_fsdp2.py."""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

import ina.torch


def _train(*, overlapped: bool) -> list[float]:
    torch.manual_seed(0)
    net: Any = nn.Sequential(*(nn.Linear(40, 40) for _ in range(4)))
    for layer in net:
        fully_shard(layer)
    fully_shard(net)
    for layer, following in itertools.pairwise(net):
        layer.set_modules_to_forward_prefetch([following])
    if overlapped:
        ina.torch.overlap(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    torch.manual_seed(1 + dist.get_rank())
    losses = []
    for step in range(6):
        for _ in range(1 + step % 2):  # the second adds its gradients to the first's
            loss = net(torch.randn(8, 40)).square().mean()
            loss.backward()
        losses.append(loss.item())
        optimizer.step()
        optimizer.zero_grad()
    return losses


def with_and_without(rank: int, workers: int) -> dict[str, Any]:
    """Losses of a training that waits and of one that does not; which way it all went."""
    usual, overlapped = _train(overlapped=False), _train(overlapped=True)
    stats = ina.torch.stats()
    return {
        "losses": (usual, overlapped),
        "network": (stats.network_reduce_scatters, stats.network_all_gathers > 0),
        "gloo": {**stats.fallback_reasons, **stats.other_collectives},
    }


def moved(rank: int, workers: int) -> bool:
    """Bits that no arithmetic keeps, and flags, come as they are."""
    patterns = torch.arange(0x7FC00000, 0x7FC00000 + 3000, dtype=torch.int32) + rank
    whole = torch.zeros(workers * 3000)
    dist.all_gather_into_tensor(whole, patterns.view(torch.float32))
    assert torch.equal(
        whole.view(torch.int32).view(workers, -1)[:, 0], 0x7FC00000 + torch.arange(workers)
    )
    flags = torch.arange(5001) % 7 == rank
    dist.broadcast(flags, workers - 1)
    assert torch.equal(flags, torch.arange(5001) % 7 == workers - 1)
    dist.barrier()
    return True
