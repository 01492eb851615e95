"""What each worker does in test_devices.py."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed import ReduceOp

import ina.torch
from ina.protocol.collective import Reduction
from ina.torch import pieces
from ina.torch.errors import UnsupportedDeviceError
from tests.torch.functional_cases import world
from tests.torch.group_cases import Messages

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int32)


def staged_as_direct(rank: int, workers: int) -> int:
    """The path of GPU tensors, taken with CPU tensors, gives the bits of the direct path."""
    group = world()
    assert isinstance(group, ina.torch.ProcessGroupIna)
    compared, is_packed = 0, os.environ.get("INA_WIRE", "32") != "32"
    for op, reduction in ((ReduceOp.SUM, Reduction.SUM), (ReduceOp.AVG, Reduction.AVERAGE)):
        direct = [_input(rank, elems, dtype) for dtype in DTYPES for elems in (1, 256, 5003)]
        direct.append(torch.full((3, 7), float(rank)).t()[2:5])  # not contiguous
        staged = [tensor.clone(memory_format=torch.preserve_format) for tensor in direct]
        staged[-1] = torch.full((3, 7), float(rank)).t()[2:5]
        for tensor in direct:
            dist.all_reduce(tensor, op)
        parts, summed = group._stage([pieces.whole(tensor) for tensor in staged], reduction)
        assert summed is (reduction if is_packed else Reduction.SUM)
        assert is_packed or all(part.buffer.dtype == torch.int32 for part in parts)
        work = group._sum("all_reduce", parts, op if is_packed else ReduceOp.SUM, None)
        assert work.wait()
        for one, other in zip(direct, staged, strict=True):
            assert torch.equal(_bits(one), _bits(other)), (op, one.dtype, one.shape)
            compared += one.numel()
    elems = 2 * group._worker.values_per_packet  # whole packets: parts share no exponent
    inputs, output = torch.randn(elems * workers), torch.zeros(elems)
    wanted = torch.zeros(elems)
    dist.reduce_scatter_tensor(wanted, inputs)
    part, _ = group._stage([pieces.scattered_by_sum(output, inputs, rank)], Reduction.SUM)
    group._sum("reduce_scatter", part, ReduceOp.SUM, None).wait()
    assert torch.equal(output, wanted)
    return compared


def _input(rank: int, elems: int, dtype: torch.dtype) -> torch.Tensor:
    generator = torch.Generator().manual_seed(rank + elems)
    if dtype == torch.int32:
        return torch.randint(-(2**31), 2**31, (elems,), dtype=dtype, generator=generator)
    values = torch.randn(elems, generator=generator) * 10.0 ** torch.randint(-8, 4, (1,)).item()
    if elems > 5000:
        values[300:600] = 0.0
        values[700 + rank] = float("inf")
        values[3000] = -float("nan")
        values[1024:1280] *= 2.0**-130  # subnormal
    return values.to(dtype)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.uint8)


def two_backends(rank: int, workers: int) -> tuple[list[str], dict[str, int], bool]:
    """A second Gloo stands for the GPUs' backend: it is made once, by all, and destroyed."""
    messages = Messages()
    group = world()
    assert isinstance(group, ina.torch.ProcessGroupIna)
    cuda = torch.device("cuda")
    with pytest.raises(RuntimeError, match="cuda"):
        group._get_backend(cuda)  # not made yet
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert tensor.eq(workers).all()
    before = len(dist.distributed_c10d._world.pg_map)

    # No tensor can be on a GPU here. One that says so goes to the right group, which does nothing.
    with FakeTensorMode():
        fake = torch.ones(3, device="cuda")
        for _ in range(2):
            dist.all_reduce(fake)
        dist.reduce(fake, 0)
    assert len(dist.distributed_c10d._world.pg_map) == before + 1
    second = group._devices.group_for("cuda")
    assert second is group._devices.group_for("cuda")
    assert group._get_backend(cuda) is not None
    dist.all_reduce(tensor, group=second)  # works: it is a group of all ranks
    assert tensor.eq(workers**2).all()

    pair = dist.new_group([0, 1])  # with the backends of the default group
    if rank < 2:
        assert dist.get_backend_config(pair) == "cpu:ina,cuda:gloo"
        assert isinstance(pair, ina.torch.ProcessGroupIna)
        other = pair._devices.group_for("cuda")
        assert other.size() == 2
        number = torch.ones(1)
        dist.all_reduce(number, group=other)
        assert number.item() == 2
        dist.destroy_process_group(pair)
        assert other not in dist.distributed_c10d._world.pg_map
    with pytest.raises(UnsupportedDeviceError, match=r"made with cpu:ina,cuda:gloo; name a b"):
        dist.all_reduce(torch.ones(1, device="meta"))
    return messages.lines, ina.torch.stats().other_collectives, ina.torch.stats().fallbacks == 0


def ours_second(rank: int, workers: int) -> dict[str, Any]:
    """``cpu:gloo,cuda:ina``: CPU tensors stay with Gloo."""
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    assert tensor.eq(workers).all()
    parts = torch.zeros(1)
    dist.reduce_scatter_tensor(parts, torch.ones(workers))
    assert parts.item() == workers
    stats = ina.torch.stats()
    return {"network": stats.network_all_reduces, "others": stats.other_collectives}


def on_one_gpu(rank: int, workers: int) -> int:
    """Ranks that share a GPU: large sums, a stream that is behind, DDP with the hook.

    The group is Gloo's, since NCCL takes one rank a GPU; the hook's is ina's.
    """
    device = torch.device("cuda", 0)
    state = ina.torch.HookState()
    for elems in (1, 100_003, 16 << 20):
        host = _input(rank, elems, torch.float32)
        work = dist.all_reduce(tensor := host.to(device), group=state.group, async_op=True)
        assert work is not None
        work.wait()
        dist.all_reduce(host, group=state.group)
        assert torch.equal(_bits(tensor.cpu()), _bits(host)), elems
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)  # type: ignore[no-untyped-call]  # values come later
        tensor = torch.full((5000,), 1.0 + rank, device=device)
        dist.all_reduce(tensor, group=state.group)
        assert tensor.eq(sum(range(1, workers + 1))).all()
    torch.manual_seed(3)
    layers = [torch.nn.Linear(50, 400), torch.nn.ReLU(), torch.nn.Linear(400, 20)]
    gradients = []
    for hook in (None, ina.torch.allreduce_hook):
        net = torch.nn.Sequential(*layers).to(device)
        net.zero_grad()
        model = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.02)
        if hook is not None:
            model.register_comm_hook(state, hook)
        inputs = torch.randn(8, 50, generator=torch.Generator().manual_seed(rank)).to(device)
        torch.autograd.backward(model(inputs).square().sum())
        gradients.append([one.grad.clone() for one in net.parameters() if one.grad is not None])
    for plain, summed in zip(*gradients, strict=True):
        torch.testing.assert_close(summed, plain, rtol=1e-4, atol=1e-4)
    sums = state.stats().network_all_reduces
    state.close()
    return sums


def on_gpu(rank: int, workers: int) -> int:
    """Sums of GPU tensors; with ina they have the bits of the CPU's."""
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    ours = dist.get_backend_config(world()).endswith("cuda:ina")
    for dtype in DTYPES:
        for op in (ReduceOp.SUM, ReduceOp.AVG) if ours else (ReduceOp.SUM,):
            host = _input(rank, 100_003, dtype)
            tensor = host.to(device)
            work = dist.all_reduce(tensor, op, async_op=True)
            assert work is not None
            assert work.wait()
            dist.all_reduce(host, op)
            if ours:
                assert torch.equal(_bits(tensor.cpu()), _bits(host)), (dtype, op)
    layer = torch.nn.Linear(50, 20).to(device)
    model = torch.nn.parallel.DistributedDataParallel(layer)
    torch.autograd.backward(model(torch.randn(4, 50, device=device)).sum())
    gradient = layer.weight.grad
    assert gradient is not None
    same = gradient.clone()
    dist.broadcast(same, 0)
    assert torch.equal(same, gradient)
    on_cuda = ina.torch.stats().other_collectives.get("all_reduce on cuda", 0)
    return 0 if on_cuda else ina.torch.stats().network_all_reduces
