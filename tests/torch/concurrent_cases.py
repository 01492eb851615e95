"""What each worker does in test_concurrent.py."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import ina.torch
from tests.worlds.processes.runs import wait_until

GROUPS, TENSORS = 3, 150


def many_at_once(rank: int, workers: int) -> bool:
    """A thread a group, each with many sums under way, waited for in another order."""
    groups = [dist.new_group() for _ in range(GROUPS)]

    def sums(number: int) -> None:
        tensors, works = [], []
        for index in range(TENSORS):
            dtype = (torch.int32, torch.float32, torch.float16)[index % 3]
            elems = (index * 37) % 1500
            tensors.append(torch.full((elems,), rank + index % 7 + number).to(dtype))
            works.append(dist.all_reduce(tensors[-1], group=groups[number], async_op=True))
        order = torch.randperm(TENSORS, generator=torch.Generator().manual_seed(rank))
        for index in order.tolist():
            work = works[index]
            assert work is not None
            work.wait()
            total = sum(other + index % 7 + number for other in range(workers))
            assert bool((tensors[index] == total).all()), (number, index)

    with ThreadPoolExecutor(GROUPS) as pool:
        for done in [pool.submit(sums, number) for number in range(GROUPS)]:
            done.result(60)
    return True


def _stop_at(out: torch.Tensor, stop: Callable[[torch.Tensor], None]) -> None:
    out.register_hook(stop)  # type: ignore[no-untyped-call]


def reduce_while_backward_computes(rank: int, workers: int) -> bool:
    """Backward stops before the first layer's gradients, until later layers' are reduced.

    Returns whether the step was as one without the stop.
    """
    torch.manual_seed(5)
    net = nn.Sequential(nn.Linear(20, 300), nn.ReLU(), nn.Linear(300, 300), nn.Linear(300, 5))
    model = DistributedDataParallel(net, bucket_cap_mb=0.05)

    def step(stop: Callable[[torch.Tensor], None]) -> torch.Tensor:
        model.zero_grad()
        handle = net[0].register_forward_hook(lambda *call: _stop_at(call[2], stop))
        torch.autograd.backward(model(torch.full((4, 20), rank + 1.0)).square().mean())
        handle.remove()
        return torch.cat([parameter.grad.flatten() for parameter in net.parameters()])  # type: ignore[union-attr]

    wanted = step(lambda grad: None)  # DDP chooses its buckets anew after the first step

    def chunks_done() -> int:
        return int(ina.torch.stats().session["chunks_done"])

    before, during = chunks_done(), 0

    def wait_for_later_layers(grad: torch.Tensor) -> None:
        nonlocal during
        wait_until(lambda: chunks_done() > before, "a later layer's gradients")
        during = chunks_done() - before

    found = step(wait_for_later_layers)
    torch.testing.assert_close(found, wanted)
    return during > 0


def train_through_a_loss(folder: Path, rank: int, workers: int) -> tuple[list[float], bool, int]:
    """DDP with several buckets in flight; the test kills the switch after some steps."""
    logging.getLogger("ina.torch").setLevel(logging.ERROR)
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(20, 300), nn.ReLU(), nn.Linear(300, 300), nn.Linear(300, 5))
    model = DistributedDataParallel(net, bucket_cap_mb=0.05)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(rank)
    for step in range(40):
        if step == 10 and rank == 0:
            (folder / "ten").touch()
        if step == 20:  # all steps from here on are without the switch
            wait_until(lambda: (folder / "killed").exists(), "the kill")
        inputs = torch.randn(16, 20, generator=generator)
        optimizer.zero_grad()
        torch.autograd.backward(model(inputs).square().mean())
        optimizer.step()
    flat = torch.cat([parameter.detach().flatten() for parameter in net.parameters()])
    if dist.get_backend() != "ina":
        return flat.tolist(), False, 0
    stats = ina.torch.stats()
    return flat.tolist(), stats.switch_loss is not None, stats.fallbacks
