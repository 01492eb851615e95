"""What each worker does in test_hook.py."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

import ina.torch
from ina.torch.errors import GroupClosedError, NotInaGroupError


def _net() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(20, 90), nn.ReLU(), nn.Linear(90, 90), nn.Linear(90, 5))


def gradients(
    rank: int,
    *,
    hook: Any = None,
    state: Any = None,
    group: dist.ProcessGroup | None = None,
    dtype: torch.dtype = torch.float32,
    steps: int = 3,
    bucket_mib: float = 0.01,
) -> torch.Tensor:
    """The last step's averaged gradients of a small model, flat."""
    net = _net().to(dtype)
    model = DistributedDataParallel(net, bucket_cap_mb=bucket_mib, process_group=group)
    if hook is not None:
        model.register_comm_hook(state, hook)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(steps):
        model.zero_grad()
        inputs = torch.randn(16, 20, generator=generator).to(dtype)
        torch.autograd.backward(model(inputs).square().mean())
    return torch.cat([p.grad.flatten() for p in net.parameters() if p.grad is not None])


def hook_over_gloo(rank: int, workers: int) -> dict[str, Any]:
    """The hook beside a Gloo default group, in its uses; what it counted."""
    plain = gradients(rank)
    state = ina.torch.HookState()
    hooked = gradients(rank, hook=ina.torch.allreduce_hook, state=state)
    torch.testing.assert_close(hooked, plain, rtol=1e-5, atol=1e-7)
    first = state.stats()

    lazily = gradients(rank, hook=ina.torch.allreduce_hook)  # state None: one job, made once
    assert torch.equal(lazily, hooked)
    assert torch.equal(gradients(rank, hook=ina.torch.allreduce_hook), hooked)

    double = gradients(rank, hook=ina.torch.allreduce_hook, state=state, dtype=torch.float64)
    torch.testing.assert_close(double, plain.double(), rtol=1e-3, atol=1e-6)
    bf16 = gradients(
        rank,
        hook=default_hooks.fp16_compress_wrapper(ina.torch.allreduce_hook),
        state=state,
    )
    torch.testing.assert_close(bf16, plain, rtol=2e-2, atol=1e-3)

    half = dist.new_group([0, 1])
    if rank < 2:
        mine = ina.torch.HookState(half)
        expected = gradients(rank, group=half)
        got = gradients(rank, hook=ina.torch.allreduce_hook, state=mine, group=half)
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-7)
        assert mine.stats().world_size == 2
        mine.close()
    with pytest.raises(NotInaGroupError, match=r"its state is ProcessGroup; pass ina"):
        gradients(rank, hook=ina.torch.allreduce_hook, state=dist.group.WORLD, steps=1)
    dist.barrier()
    state.close()
    state.close()
    with pytest.raises(GroupClosedError, match="destroyed"):
        gradients(rank, hook=ina.torch.allreduce_hook, state=state, steps=1)
    dist.barrier()
    return {"job": first.job, "sums": first.network_all_reduces, "fallbacks": first.fallbacks}


def hooks_over_ina(rank: int, workers: int) -> ina.torch.GroupStats:
    """torch's own hooks, and ours, with ina as the default backend."""
    plain = gradients(rank)
    group = dist.group.WORLD
    ours = gradients(rank, hook=ina.torch.allreduce_hook, state=ina.torch.HookState())
    assert torch.equal(ours, gradients(rank, hook=ina.torch.allreduce_hook, state=group))
    torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-7)
    for hook in (default_hooks.allreduce_hook, default_hooks.fp16_compress_hook, bfloat16):
        got = gradients(rank, hook=hook)
        torch.testing.assert_close(got, plain, rtol=4e-2, atol=2e-3)
    if torch.cuda.is_available():  # where torch's PowerSGD asks for tensors on a GPU
        return ina.torch.stats()
    # PowerSGD's continuations wait for further collectives.
    assert group is not None
    low_rank = [_power_sgd(rank, over) for over in (group, dist.new_group(backend="gloo"))]
    torch.testing.assert_close(*low_rank, rtol=1e-3, atol=1e-4)
    return ina.torch.stats()


def _power_sgd(rank: int, group: dist.ProcessGroup) -> torch.Tensor:
    state = powerSGD_hook.PowerSGDState(
        group, matrix_approximation_rank=2, start_powerSGD_iter=2, random_seed=1
    )
    # One bucket: with several, continuations of different buckets race to start collectives.
    return gradients(
        rank, hook=powerSGD_hook.powerSGD_hook, state=state, group=group, steps=4, bucket_mib=1
    )


# DDP refuses torch's hook by its name where torch was built without CUDA; the hook itself works.
bfloat16 = lambda state, bucket: default_hooks.bf16_compress_hook(state, bucket)  # noqa: E731
