"""What each worker does in test_functional.py: functional collectives, reduce_scatter, compile."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed import _functional_collectives as functional
from torch.distributed.distributed_c10d import _coalescing_manager

import ina.torch


def world() -> dist.ProcessGroup:
    group = dist.group.WORLD
    assert group is not None
    return group


def functional_collectives(rank: int, workers: int) -> ina.torch.GroupStats:
    """Each functional collective; the sums go through the network."""
    group, total = world(), float(sum(range(workers)))
    mine = torch.full((6,), float(rank))
    assert functional.all_reduce(mine, "sum", group).eq(total).all()
    assert functional.all_reduce(mine, "avg", group.group_name).eq(total / workers).all()
    assert mine.eq(rank).all()  # functional: the input stays
    pair = functional.all_reduce_coalesced([mine, mine.to(torch.int32)], "sum", group)
    assert pair[0].eq(total).all()
    assert pair[1].eq(int(total)).all()
    table = torch.arange(6.0).view(2, 3) + rank
    summed = functional.all_reduce(table.t(), "sum", group)
    assert torch.equal(summed + 0, workers * torch.arange(6.0).view(2, 3).t() + total)

    chunks = torch.arange(3.0 * workers)
    part = functional.reduce_scatter_tensor(chunks, "sum", 0, group)
    assert torch.equal(part + 0, workers * chunks.view(workers, 3)[rank])
    part = functional.reduce_scatter_tensor(chunks.view(3, workers), "avg", 1, group)
    assert torch.equal(part + 0, chunks.view(3, workers)[:, rank : rank + 1])

    gathered = functional.all_gather_tensor(torch.tensor([float(rank)]), 0, group)
    assert gathered.tolist() == list(range(workers))
    swapped = functional.all_to_all_single(torch.full((workers,), float(rank)), None, None, group)
    assert swapped.tolist() == list(range(workers))
    assert functional.broadcast(mine, 1, group).eq(1).all()
    turned = functional.permute_tensor(mine, [(r + 1) % workers for r in range(workers)], group)
    assert turned.eq((rank - 1) % workers).all()

    pending = functional.all_reduce(mine, "sum", group)  # not waited for yet
    dist.all_reduce(pending)
    assert pending.eq(total * workers).all()
    pending = functional.all_reduce(torch.ones(workers), "sum", group)
    mine_of_it = torch.zeros(1)
    dist.reduce_scatter_tensor(mine_of_it, pending)
    assert mine_of_it.item() == workers**2
    with FakeTensorMode():
        dist.all_reduce(torch.ones(3))  # a tensor without memory: nothing is summed

    leaf = torch.ones(4, requires_grad=True)
    torch.autograd.backward(functional.all_reduce(leaf * (rank + 1), "sum", group).sum())
    assert leaf.grad is not None
    assert leaf.grad.eq(workers * (rank + 1)).all()
    return ina.torch.stats()


def reduce_scatter_forms(rank: int, workers: int) -> ina.torch.GroupStats:
    """Its spellings, dtypes, operations; what does not fit is torch's error."""
    group = world()
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32):
        inputs = torch.arange(2 * workers).to(dtype) * (rank + 1)
        scale = sum(range(1, workers + 1))
        mine = torch.arange(2 * workers).to(dtype)[2 * rank : 2 * rank + 2] * scale
        output = torch.zeros(2, dtype=dtype)
        dist.reduce_scatter_tensor(output, inputs)
        assert torch.equal(output, mine), (dtype, output)
        output = torch.zeros(2, dtype=dtype)
        dist.reduce_scatter(output, list(inputs.view(workers, 2)))
        assert torch.equal(output, mine)
        assert torch.equal(inputs, torch.arange(2 * workers).to(dtype) * (rank + 1))
    average = torch.zeros(1)
    work = dist.reduce_scatter_tensor(
        average, torch.full((workers,), float(rank)), dist.ReduceOp.AVG, async_op=True
    )
    assert work is not None
    assert work.wait()
    assert work.result()[0] is average
    assert average.item() == (workers - 1) / 2
    strided = torch.zeros(2, 2).t()[0]
    dist.reduce_scatter_tensor(strided, torch.ones(2 * workers))
    assert strided.eq(workers).all()
    one, two = torch.zeros(1), torch.zeros(3)
    with _coalescing_manager(group, async_ops=True) as manager:
        dist.reduce_scatter_tensor(one, torch.ones(workers))
        dist.reduce_scatter_tensor(two, torch.ones(3 * workers))
    manager.wait()
    assert one.item() == workers
    assert two.eq(workers).all()

    double = torch.zeros(1, dtype=torch.float64)
    dist.reduce_scatter_tensor(double, torch.ones(workers, dtype=torch.float64))
    assert double.item() == workers
    largest = torch.zeros(1)
    inputs = torch.full((workers,), float(rank))
    dist.reduce_scatter_tensor(largest, inputs, dist.ReduceOp.MAX)
    assert largest.item() == workers - 1
    with pytest.raises((RuntimeError, ValueError)):
        dist.reduce_scatter_tensor(torch.zeros(2), torch.ones(workers + 1))
    return ina.torch.stats()


def inner_operations(rank: int, workers: int) -> dict[str, int]:
    """What the network does not do is done by the inner group, with torch's meaning."""
    numbers = torch.tensor([rank + 1, 7 - rank])
    for dtype in (torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8):
        for op, wanted in (
            (dist.ReduceOp.MIN, [1, 8 - workers]),
            (dist.ReduceOp.MAX, [workers, 7]),
        ):
            tensor = numbers.to(dtype, copy=True)
            dist.all_reduce(tensor, op)
            assert tensor.tolist() == wanted, (dtype, op)
        products = [
            torch.tensor([rank + 1 for rank in range(workers)]).prod().item(),
            torch.tensor([7 - rank for rank in range(workers)]).prod().item(),
        ]
        tensor = numbers.to(dtype, copy=True)
        dist.all_reduce(tensor, dist.ReduceOp.PRODUCT)
        assert tensor.tolist() == products, dtype
    bits = torch.tensor([1 << rank, 0b1110], dtype=torch.int32)
    dist.all_reduce(bits, dist.ReduceOp.BOR)
    assert bits.tolist() == [(1 << workers) - 1, 0b1110]
    view = torch.full((4, 4), float(rank)).t()[1:3]
    dist.all_reduce(view, dist.ReduceOp.MAX)  # not contiguous
    assert view.eq(workers - 1).all()
    return ina.torch.stats().fallback_reasons


def compiled(rank: int, workers: int) -> list[str]:
    """torch.compile keeps the collectives in one graph; with inductor where a compiler is there."""
    group = world()

    def step(x: torch.Tensor) -> torch.Tensor:
        summed = functional.all_reduce(x * 2, "sum", group)
        everyone = functional.all_gather_tensor(summed, 0, group)
        part = functional.reduce_scatter_tensor(everyone, "sum", 0, group)
        both: torch.Tensor = part + summed
        return both

    def in_place(x: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(x)  # torch.compile turns it into the functional one
        return x + 1

    x = torch.arange(4.0) + rank
    wanted = step(x) + 0
    before = ina.torch.stats().network_all_reduces
    done = []
    for backend in ("eager", "aot_eager"):
        run: Any = torch.compile(step, backend=backend, fullgraph=True)
        assert torch.equal(run(x), wanted), backend
        run = torch.compile(in_place, backend=backend, fullgraph=True)
        assert run(torch.ones(3)).eq(workers + 1).all(), backend
        done.append(backend)
    assert ina.torch.stats().network_all_reduces == before + 4
    return done


def compiled_by_inductor(rank: int, workers: int) -> bool:
    """The default backend of torch.compile, which compiles C++."""

    def step(x: torch.Tensor) -> torch.Tensor:
        waved: torch.Tensor = functional.all_reduce(x.sin() * 2, "sum", world()).cos()
        return waved + 1

    x = torch.arange(40.0) + rank
    run: Any = torch.compile(step, fullgraph=True)
    torch.testing.assert_close(run(x), step(x) + 0)
    return True


def all_of_them(rank: int, workers: int) -> dict[str, Any]:
    """The cases above, one after the other."""
    first = functional_collectives(rank, workers)
    second = reduce_scatter_forms(rank, workers)
    return {
        "functional": (first.network_all_reduces, first.network_reduce_scatters),
        "others": first.other_collectives,
        "moved": (first.network_all_gathers, first.network_broadcasts),
        "scattered": second.network_reduce_scatters - first.network_reduce_scatters,
        "fallbacks": second.fallback_reasons,
        "inner": inner_operations(rank, workers),
        "compiled": compiled(rank, workers),
    }
