"""What each worker does in test_group.py; every function returns what the test then compares."""

from __future__ import annotations

import logging
import os
import signal
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import PrefixStore
from torch.distributed import _functional_collectives as functional
from torch.nn.parallel import DistributedDataParallel

import ina.torch


class Messages(logging.Handler):
    """Collects what ina.torch logs."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        logger = logging.getLogger("ina.torch")
        logger.addHandler(self)
        logger.setLevel(logging.DEBUG)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")


def many_in_flight(rank: int, workers: int) -> bool:
    """Forty sums of different types and lengths start before the first is waited for."""
    tensors, works = [], []
    for index in range(40):
        dtype = (torch.float32, torch.int32, torch.bfloat16)[index % 3]
        tensor = torch.full((index * 97,), rank + index, dtype=dtype)
        tensors.append(tensor)
        works.append(dist.all_reduce(tensor, async_op=True))
    for index in reversed(range(40)):
        works[index].wait(timedelta(seconds=30))
        assert works[index].is_completed()
        total = sum(other + index for other in range(workers))
        assert bool((tensors[index] == total).all()), index
    return True


def futures_chain(rank: int, workers: int) -> float:
    """A DDP hook's pattern: the average as a continuation of the sum's future."""
    tensor = torch.full((1000,), float(rank))
    future = dist.all_reduce(tensor, async_op=True).get_future()
    average = future.then(lambda done: done.value()[0] / workers)
    return float(average.wait()[0])


def odd_tensors(rank: int, workers: int) -> bool:
    """Not contiguous, of no dimension, with gradient, coalesced, functional."""
    total = sum(range(workers))
    table = torch.full((6, 5), float(rank))
    dist.all_reduce(table[:, 1:3])
    assert table[:, 1:3].eq(total).all()
    assert table[:, 3:].eq(rank).all()
    scalar = torch.tensor(rank, dtype=torch.int32)
    dist.all_reduce(scalar)
    assert scalar.item() == total
    image = torch.full((2, 3, 4, 4), float(rank)).to(memory_format=torch.channels_last)
    dist.all_reduce(image)
    assert image.eq(total).all()
    group = dist.group.WORLD
    assert group is not None
    new = functional.all_reduce(torch.full((7,), float(rank)), "sum", group) + 0
    assert new.eq(total).all()
    numbers = torch.full((5,), complex(rank, 1))
    dist.all_reduce(numbers)
    assert numbers.eq(complex(total, workers)).all()
    return True


def other_collectives(rank: int, workers: int) -> tuple[list[str], ina.torch.GroupStats]:
    """Every other collective gives what torch documents; log lines are returned."""
    messages = Messages()
    for _ in range(2):
        value = torch.full((3,), float(rank))
        dist.broadcast(value, 1)
        assert value.eq(1).all()
        parts = [torch.zeros(2) for _ in range(workers)]
        dist.all_gather(parts, torch.full((2,), float(rank)))
        assert [part[0].item() for part in parts] == list(range(workers))
        flat = torch.zeros(workers)
        dist.all_gather_into_tensor(flat, torch.tensor([float(rank)]))
        assert flat.tolist() == list(range(workers))
        largest = torch.tensor([float(rank)])
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        assert largest.item() == workers - 1
        double = torch.tensor([float(rank)], dtype=torch.float64)
        dist.all_reduce(double)
        assert double.item() == sum(range(workers))
        one = torch.zeros(1)
        dist.reduce_scatter(one, [torch.tensor([float(i)]) for i in range(workers)])
        assert one.item() == rank * workers
        one = torch.zeros(1)
        dist.reduce_scatter_tensor(one, torch.arange(float(workers)))
        assert one.item() == rank * workers
        swapped = torch.zeros(workers)
        dist.all_to_all_single(swapped, torch.full((workers,), float(rank)))
        assert swapped.tolist() == list(range(workers))
        reduced = torch.tensor([1.0])
        dist.reduce(reduced, 0)
        if rank == 0:
            assert reduced.item() == workers
        gathered = [torch.zeros(1) for _ in range(workers)] if rank == 0 else None
        dist.gather(torch.tensor([float(rank)]), gathered)
        piece = torch.zeros(1)
        dist.scatter(piece, [torch.tensor([i * 1.0]) for i in range(workers)] if not rank else None)
        assert piece.item() == rank
        if rank == 0:
            dist.send(torch.tensor([5.0]), 1)
        elif rank == 1:
            received = torch.zeros(1)
            dist.recv(received, 0)
            assert received.item() == 5.0
        objects: list[Any] = [None] * workers
        dist.all_gather_object(objects, {"rank": rank})
        assert [thing["rank"] for thing in objects] == list(range(workers))
        dist.barrier()
    return messages.lines, ina.torch.stats()


def train(rank: int, workers: int) -> tuple[list[float], ina.torch.GroupStats]:
    """A few DDP steps in small buckets; returns the parameters."""
    torch.manual_seed(3)
    layers = [nn.Linear(20, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 5)]
    net = nn.Sequential(*layers)
    model = DistributedDataParallel(net, bucket_cap_mb=0.01)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(rank)
    for _ in range(8):
        inputs = torch.randn(16, 20, generator=generator)
        optimizer.zero_grad()
        torch.autograd.backward(model(inputs).square().mean())
        optimizer.step()
    flat = torch.cat([parameter.detach().flatten() for parameter in net.parameters()])
    stats = ina.torch.stats() if dist.get_backend() == "ina" else None
    return flat.tolist(), stats  # type: ignore[return-value]


def sub_groups(rank: int, workers: int) -> tuple[str, str]:
    """Two groups of two ranks sum at the same time, each in a job of its own."""
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    mine = pairs[rank // 2]
    tensor = torch.full((500,), float(rank))
    whole = torch.full((500,), float(rank))
    works = [dist.all_reduce(tensor, group=mine, async_op=True)]
    works.append(dist.all_reduce(whole, async_op=True))
    for work in works:
        work.wait()
    assert tensor.eq(1.0 if rank < 2 else 5.0).all()
    assert whole.eq(6.0).all()
    jobs = ina.torch.stats(mine).job, ina.torch.stats().job
    dist.destroy_process_group(mine)
    dist.all_reduce(whole)
    assert whole.eq(24.0).all()
    return jobs


def not_finite(rank: int, workers: int) -> tuple[bool, bool]:
    """One rank's NaN reaches every rank, and leaves the next sum clean."""
    tensor = torch.ones(1000)
    if rank == 1:
        tensor[700] = float("nan")
    dist.all_reduce(tensor)
    clean = torch.ones(1000)
    dist.all_reduce(clean)
    return bool(tensor[700].isnan()), bool(clean.eq(workers).all())


def leaves_early(rank: int, workers: int) -> str:
    """The last rank dies without a word; the others get an error within the group's timeout."""
    dist.all_reduce(torch.ones(10))
    if rank == workers - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        dist.all_reduce(torch.ones(10))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def sums_once(rank: int, workers: int) -> float:
    """One small sum."""
    tensor = torch.ones(10)
    dist.all_reduce(tensor)
    return float(tensor.sum())


def twice(rank: int, workers: int) -> float:
    """A second default group after the first was destroyed."""
    first = sums_once(rank, workers)
    store = dist.distributed_c10d._get_default_store()
    dist.destroy_process_group()
    dist.init_process_group("ina", store=PrefixStore("again", store), rank=rank, world_size=workers)
    return first + sums_once(rank, workers)


def ina_inside_gloo(rank: int, workers: int) -> float | None:
    """The default group is Gloo's; ranks 1 and 2 make an ina group."""
    dist.barrier()  # rank 0 must not end while others still connect to it
    group = dist.new_group([1, 2], backend="ina")
    if rank == 0:
        return None
    tensor = torch.tensor([float(rank)])
    dist.all_reduce(tensor, group=group)
    assert ina.torch.stats(group).network_all_reduces == 1
    return float(tensor)


def its_stats(rank: int, workers: int) -> ina.torch.GroupStats:
    """The counters after one sum."""
    sums_once(rank, workers)
    return ina.torch.stats()
