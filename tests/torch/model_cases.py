"""What each worker does in test_gpt2.py, test_mesh.py and test_amp.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

import ina.torch

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    """A script of examples/, as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def losses(rank: int, workers: int) -> dict[str, list[float]]:
    """20 steps of the GPT-2-shaped model, each way that the default group allows."""
    train = example("gpt2").train
    backend = dist.get_backend().rpartition(":")[2]
    ways = ("ddp", "fsdp2") if backend == "ina" else ("ddp", "hook")
    found = {way: train(way, 20) for way in ways}
    if backend == "ina":
        stats = ina.torch.stats()
        assert stats.network_all_reduces > 40
        assert stats.network_reduce_scatters >= 20 * 3  # two blocks and the rest, each step
    return found


def meshes(rank: int, workers: int) -> dict[str, Any]:
    """DeviceMesh of two dimensions, DTensor, FSDP2 on it; each dimension's group is a job."""
    mesh = init_device_mesh("cpu", (2, workers // 2), mesh_dim_names=("replica", "shard"))
    jobs = {name: ina.torch.stats(mesh[name].get_group()).job for name in ("replica", "shard")}
    tensor = torch.full((3,), float(rank))
    dist.all_reduce(tensor, group=mesh["replica"].get_group())
    assert tensor.eq(2 * (rank % 2) + 2).all()

    line = init_device_mesh("cpu", (workers,))
    whole = torch.arange(2.0 * workers)
    shards = distribute_tensor(whole, line, [Shard(0)])
    assert torch.equal(shards.redistribute(line, [Replicate()]).to_local(), whole)
    partial = DTensor.from_local(whole, line, [Partial()])
    assert torch.equal(partial.redistribute(line, [Replicate()]).to_local(), workers * whole)
    mine = partial.redistribute(line, [Shard(0)]).to_local()
    assert torch.equal(mine, workers * whole[2 * rank : 2 * rank + 2])

    wanted = _stepped(lambda net: DistributedDataParallel(net), rank)
    for policy in (MixedPrecisionPolicy(), MixedPrecisionPolicy(reduce_dtype=torch.bfloat16)):
        got = _stepped(lambda net: fully_shard(net, mesh=mesh, mp_policy=policy), rank)  # noqa: B023
        exact = policy.reduce_dtype is None
        rtol, atol = (1e-5, 1e-6) if exact else (0.05, 2e-3)
        torch.testing.assert_close(got, wanted, rtol=rtol, atol=atol)
    stats = ina.torch.stats(mesh["shard"].get_group())
    summed = ina.torch.stats(mesh["replica"].get_group())
    return {
        "jobs": jobs,
        "scattered": stats.network_reduce_scatters,
        "replicas": summed.network_all_reduces,
        "fallbacks": stats.fallbacks + summed.fallbacks,
    }


def _stepped(wrap: Any, rank: int) -> torch.Tensor:
    """Parameters after two steps."""
    torch.manual_seed(5)
    net = nn.Sequential(nn.Linear(10, 33), nn.Tanh(), nn.Linear(33, 4))
    model = wrap(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(2):
        torch.autograd.backward(model(torch.randn(8, 10, generator=generator)).square().mean())
        optimizer.step()
        optimizer.zero_grad()
    full = [
        parameter.full_tensor() if isinstance(parameter, DTensor) else parameter
        for parameter in model.parameters()
    ]
    return torch.cat([parameter.detach().flatten() for parameter in full])


def objects(rank: int, workers: int) -> bool:
    """Collectives of Python objects, and of sub-groups of sub-groups."""
    everyone: list[Any] = [None] * workers
    dist.all_gather_object(everyone, {"rank": rank})
    assert [one["rank"] for one in everyone] == list(range(workers))
    said = ["from 1", 1] if rank == 1 else [None, None]
    dist.broadcast_object_list(said, 1)
    assert said == ["from 1", 1]
    gathered: list[Any] | None = [None] * workers if rank == 0 else None
    dist.gather_object(("rank", rank), gathered)
    assert gathered is None or gathered == [("rank", one) for one in range(workers)]
    mine: list[Any] = [None]
    dist.scatter_object_list(mine, [f"for {one}" for one in range(workers)] if not rank else None)
    assert mine == [f"for {rank}"]
    if rank == 0:
        dist.send_object_list([{"seven": 7}], 1)
    elif rank == 1:
        got: list[Any] = [None]
        dist.recv_object_list(got, 0)
        assert got == [{"seven": 7}]
    group, _ = dist.new_subgroups(2)  # type: ignore[no-untyped-call]
    pair: list[Any] = [None, None]
    dist.all_gather_object(pair, rank, group=group)
    assert pair == [rank // 2 * 2, rank // 2 * 2 + 1]
    tensor = torch.ones(5)
    dist.all_reduce(tensor, group=group)
    assert tensor.eq(2).all()
    return True


def mesh_and_objects(rank: int, workers: int) -> dict[str, Any]:
    """Both, in one launch."""
    assert objects(rank, workers)
    return meshes(rank, workers)


def overflow(rank: int, workers: int) -> dict[str, Any]:
    """Two jobs of two ranks train with AMP beside each other, twice.

    The first time rank 1 overflows in one step; the second time nobody does.
    """
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    said = _scaled_training(rank, pairs[rank // 2], overflows=True)
    undisturbed = _scaled_training(rank, pairs[rank // 2], overflows=False)
    return {**said, "undisturbed": undisturbed["parameters"]}


def _scaled_training(rank: int, mine: dist.ProcessGroup, *, overflows: bool) -> dict[str, Any]:
    torch.manual_seed(7)
    first = nn.Linear(12, 300)
    net = nn.Sequential(first, nn.ReLU(), nn.Linear(300, 3))
    model = DistributedDataParallel(net, process_group=mine, bucket_cap_mb=0.005)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=1000)
    generator = torch.Generator().manual_seed(rank % 2)
    scales, stepped, finite = [], [], []
    for step in range(5):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(torch.randn(8, 12, generator=generator)).square().mean()
        scaled = scaler.scale(loss)
        if overflows and step == 2 and rank == 1:
            scaled = scaled * torch.inf  # what a float16 overflow leaves behind
        torch.autograd.backward(scaled)
        finite.append(
            all(bool(p.grad.isfinite().all()) for p in net.parameters() if p.grad is not None)
        )
        before = first.weight.detach().clone()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        stepped.append(not torch.equal(before, first.weight))
        scales.append(scaler.get_scale())
    flat = torch.cat([parameter.detach().flatten() for parameter in net.parameters()])
    return {"scales": scales, "stepped": stepped, "finite": finite, "parameters": flat.tolist()}
