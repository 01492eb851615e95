"""One rank of ``ina bench training``: runs one after another; rank 0 prints a JSON line for each.

Losses and what else ranks tell each other go over Gloo, beside the group that is measured.
"""

from __future__ import annotations

import gc
import hashlib
import math
import os
import statistics
import sys
import time
from itertools import islice
from pathlib import Path

import msgspec
import torch
import torch.distributed as dist
from torch import nn

import ina.torch
from ina.bench.testbed import LOOPBACK, asked_of
from ina.bench.torch.training_tasks import TASKS, TrainedTask
from ina.bench.torch.training_ways import PREPARE, TIMEOUT, Prepared
from ina.bench.training import TrainingOrder, TrainingRecord, TrainingRun, pieces

_WARM_UP = 0.05
"""Share of the steps in which the learning rate grows; then it falls, as a cosine."""
_LINK = "eth0"
"""Of a host of the star."""


def main() -> None:
    """All runs that were asked for."""
    asked = asked_of(TrainingOrder)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=TIMEOUT)
    tasks: dict[str, TrainedTask] = {}
    for model, way, seed in asked.runs:
        if model not in tasks:
            tasks[model] = TASKS[model]()
        run = TrainingRun(model, dist.get_world_size(), asked.link, asked.steps, way, seed)
        record = train(run, tasks[model])
        if dist.get_rank() == 0:
            print(msgspec.json.encode(record).decode(), flush=True)
        gc.collect()  # FSDP2's parts hold each other, and tensors of the run
    dist.destroy_process_group()
    # Gloo's threads may hold tensors still, and abort the process that takes the interpreter down
    # (pytorch/pytorch#179291).
    sys.stdout.flush()
    os._exit(0)


def train(run: TrainingRun, task: TrainedTask) -> TrainingRecord:
    """One run, the same on all ranks."""
    rank, workers = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(run.seed)  # the same initial parameters on every rank
    net = task.net()
    prepared = PREPARE[run.way](task, net)
    optimizer = task.optimizer(prepared.model)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, run.steps))
    losses, times_s = torch.zeros(run.steps), []
    dist.barrier()
    before = _sent_bytes(run, prepared)
    batches = task.batches(run.seed, rank, workers)
    for step, batch in enumerate(islice(batches, run.steps)):
        began_s = time.perf_counter()
        loss = task.loss(prepared.model, batch)
        torch.autograd.backward(loss)  # the gradients are summed over the workers here
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        losses[step] = loss.detach()
        times_s.append(time.perf_counter() - began_s)
    after = _sent_bytes(run, prepared)
    dist.all_reduce(losses)
    test_loss, accuracy = _test(task, prepared.model, rank, workers)
    wrong = _wrong(prepared)
    for close in prepared.close:
        close()
    dist.destroy_process_group(prepared.group)
    return TrainingRecord(
        run=run,
        losses=[float(losses[piece].mean()) / workers for piece in pieces(run.steps)],
        test_loss=test_loss,
        test_accuracy=accuracy,
        step_s=statistics.median(times_s),
        sent_bytes=None if before is None or after is None else (after - before) / run.steps,
        wrong=wrong,
    )


def _rate(step: int, steps: int) -> float:
    warm_up = max(1, round(_WARM_UP * steps))
    if step < warm_up:
        return (step + 1) / warm_up
    return 0.5 * (1 + math.cos(math.pi * (step - warm_up) / max(1, steps - warm_up)))


def _sent_bytes(run: TrainingRun, prepared: Prepared) -> float | None:
    if run.link != LOOPBACK:
        for line in Path("/proc/self/net/dev").read_text().splitlines():
            name, _, counts = line.partition(":")
            if name.strip() == _LINK:
                return float(counts.split()[8])
        return None
    if isinstance(prepared.group, ina.torch.ProcessGroupIna):
        return float(ina.torch.stats(prepared.group).session["bytes_sent"])
    return None


@torch.no_grad()
def _test(
    task: TrainedTask, model: nn.Module, rank: int, workers: int
) -> tuple[float, float | None]:
    """Mean loss of what was held out, and the share that is named correctly."""
    batch = task.tested(rank, workers)
    count = len(batch[0]) if isinstance(batch, tuple) else len(batch)
    hits = task.hits(model, batch)
    found = torch.tensor(
        [task.loss(model, batch).item() * count, hits or 0, count], dtype=torch.float64
    )
    dist.all_reduce(found)
    loss, named, of = found.tolist()
    return loss / of, None if hits is None else named / of


def _wrong(prepared: Prepared) -> int:
    """Ranks that have other parameters than rank 0."""
    if prepared.parameters is None:
        return 0
    flat = torch.cat([it.detach().flatten() for it in prepared.parameters])
    digest = hashlib.sha256(flat.numpy().tobytes()).digest()
    own = torch.frombuffer(bytearray(digest), dtype=torch.uint8).clone()
    first = own.clone()
    dist.broadcast(first, 0)
    found = torch.tensor([int(not torch.equal(own, first))])
    dist.all_reduce(found)
    return int(found.item())


if __name__ == "__main__":
    main()
