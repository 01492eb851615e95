"""Worker of ``ina bench fsdp``, one process a rank. Rank 0 prints one JSON line.

Each way has a group and two models of its own: one computes nothing, so that its steps are what is
sent; the other trains, from the same parameters and on the same batches. Ways take turns.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

import ina.torch
from ina.bench.collective_kinds import LinkBytes
from ina.bench.fsdp import FsdpOrder
from ina.bench.testbed import asked_of
from ina.bench.torch.link_counters import LinkCounters
from ina.bench.torch.ranks import Ranks
from ina.bench.torch.sharded import Bare, groups_of, shard, step, wrong_in_step
from ina.bench.torch.training_tasks import Text
from ina.bench.torch.training_ways import TIMEOUT

_WARM_UP = 2
_RATE = 1e-3


@dataclass
class WayModels:
    """One, with its models."""

    bare: Bare
    net: nn.Module
    optimizer: torch.optim.Optimizer
    batches: Iterator[Any]
    comm_s: list[float] = field(default_factory=list)
    step_s: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    moved: tuple[float, float] | None = None
    loss: float = 0.0
    """Of the last step, this rank's."""
    wrong: int = 0

    def train(self, task: Text) -> None:
        """One step."""
        loss = task.loss(self.net, next(self.batches))
        torch.autograd.backward(loss)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.loss = loss.item()

    def record(self) -> dict[str, Any]:
        """Plain data."""
        names = ("comm_s", "step_s", "losses", "moved", "wrong")
        return {name: getattr(self, name) for name in names}


def prepared(way: str, task: Text, workers: int) -> WayModels:
    """With a group of its own."""
    backend = "gloo" if way == "gloo" else "ina"
    group = dist.new_group(list(range(workers)), timeout=TIMEOUT, backend=backend)
    assert isinstance(group, dist.ProcessGroup)
    torch.manual_seed(1)  # the same initial parameters on every rank, in each way
    net = task.net()
    bare = Bare(net)
    for model in (bare, net):
        shard(model, group)
        if way == "overlap":
            ina.torch.overlap(model)
    batches = task.batches(1, dist.get_rank(), workers)
    return WayModels(bare, net, task.optimizer(net), batches)


def communicate(ways: dict[str, WayModels], asked: FsdpOrder, ranks: Ranks) -> None:
    """Samples of steps that compute nothing."""
    for way in ways.values():
        way.wrong = ranks.total(wrong_in_step(way.bare))
        for _ in range(_WARM_UP):
            step(way.bare)
    begun = time.perf_counter()
    for turn in range(asked.repeats):
        for way in ways.values():
            way.comm_s.append(timed(ranks, partial(step, way.bare)))
        late = time.perf_counter() - begun > asked.seconds and turn >= 2
        if ranks.first(int(late)):
            break


def count(ways: dict[str, WayModels], counters: LinkCounters, ranks: Ranks) -> None:
    """What a step has on the links, mean of the ranks."""
    for way in ways.values():
        ranks.meet()
        before = counters.read()
        ranks.meet()
        step(way.bare)
        ranks.meet()
        after = counters.read()
        moved = LinkBytes(after.sent - before.sent, after.received - before.received)
        found = ranks.each(moved)
        way.moved = (
            sum(it.sent for it in found) / len(found),
            sum(it.received for it in found) / len(found),
        )


def train(ways: dict[str, WayModels], asked: FsdpOrder, task: Text, ranks: Ranks) -> None:
    """All steps; the first ones warm up, too: their losses count, their times do not."""
    for number in range(asked.steps):
        for way in ways.values():
            passed_s = timed(ranks, partial(way.train, task))
            if number >= min(_WARM_UP, asked.steps - 1):
                way.step_s.append(passed_s)
            way.losses.append(ranks.mean(way.loss))


def timed(ranks: Ranks, work: Callable[[], object]) -> float:
    """Seconds of the slowest rank."""
    ranks.meet()
    started = time.perf_counter()
    work()
    return ranks.most(time.perf_counter() - started)


def main() -> None:
    """Measure; one JSON line."""
    asked = asked_of(FsdpOrder)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=TIMEOUT)
    ranks, workers = Ranks(), dist.get_world_size()
    task = Text(asked.layers, asked.width, asked.heads)
    net = task.net()
    ways = {way: prepared(way, task, workers) for way in asked.ways}
    communicate(ways, asked, ranks)
    if asked.net:
        count(ways, LinkCounters(asked.net), ranks)
    train(ways, asked, task, ranks)
    if dist.get_rank() == 0:
        record = {
            "parameters": sum(it.numel() for it in net.parameters()),
            "groups": [asdict(it) for it in groups_of(net, workers)],
            "ways": {name: way.record() for name, way in ways.items()},
        }
        print(json.dumps(record), flush=True)
    dist.barrier()
    dist.destroy_process_group()
    # Gloo's threads may hold tensors still, and abort the process that takes the interpreter down
    # (pytorch/pytorch#179291).
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
