"""Worker of ``ina bench ddp``: training steps of one DDP model, with ina and with Gloo in turns.

One model and one set of buckets for both: a communication hook hands each bucket, as it becomes
ready in backward, to the group whose turn it is, divided as DDP's own hook divides it.
"""

# No `from __future__ import annotations`: DDP compares the hook's annotations with classes.

import json
import statistics
import time
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import GradBucket
from torch.nn.parallel import DistributedDataParallel

import ina.torch
from ina.bench.ddp import StepOrder
from ina.bench.testbed import asked_of
from ina.bench.torch.models import MODELS, Synthetic, Work

_WARM_UP = 2
_LEARNING_RATE = 1e-3


class Turns:
    """The model under DDP, and whose turn it is."""

    def __init__(self, work: Work, gloo: dist.ProcessGroup) -> None:
        self.work, self._gloo = work, gloo
        self._group: dist.ProcessGroup | None = None
        self._workers = dist.get_world_size()
        self.buckets = 0
        # Parameters need no broadcast: they are the same everywhere, or do not matter.
        self.model = DistributedDataParallel(
            work.module,
            bucket_cap_mb=work.bucket_mb,
            gradient_as_bucket_view=True,
            init_sync=False,
        )
        self.model.register_comm_hook(None, self._reduce)
        self._optimizer: torch.optim.Optimizer | None = None
        if not isinstance(work.module, Synthetic):
            self._optimizer = torch.optim.SGD(self.model.parameters(), lr=_LEARNING_RATE)

    def _reduce(self, state: object, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        self.buckets += 1
        buffer = bucket.buffer().div_(self._workers)
        work = dist.all_reduce(buffer, group=self._group, async_op=True)
        future: torch.futures.Future[Any] = work.get_future()
        return future.then(lambda done: bucket.buffer())

    def step(self, group: dist.ProcessGroup | None) -> tuple[float, float]:
        """Seconds of the slowest rank, and mean CPU seconds of those that run no switch."""
        self._group = group
        dist.barrier(group=self._gloo)
        cpu, started = time.process_time(), time.perf_counter()
        self._train(self.model)
        return self._agree(time.perf_counter() - started, time.process_time() - cpu)

    def compute_s(self) -> float:
        """Seconds of a step without communication, of the slowest rank."""
        dist.barrier(group=self._gloo)
        started = time.perf_counter()
        with self.model.no_sync():
            self._train(self.model)
        return self._agree(time.perf_counter() - started, 0.0)[0]

    def _train(self, model: nn.Module) -> None:
        if self._optimizer is not None:
            self._optimizer.zero_grad(set_to_none=False)
        else:
            self.model.zero_grad(set_to_none=False)
        torch.autograd.backward(model(self.work.batch))
        if self._optimizer is not None:
            self._optimizer.step()

    def _agree(self, passed_s: float, cpu_s: float) -> tuple[float, float]:
        slowest = torch.tensor([passed_s], dtype=torch.float64)
        spent = torch.tensor([cpu_s, 1.0], dtype=torch.float64)
        if ina.torch.stats().switch is not None:
            spent.zero_()
        dist.all_reduce(slowest, dist.ReduceOp.MAX, group=self._gloo)
        dist.all_reduce(spent, group=self._gloo)
        return slowest.item(), (spent[0] / spent[1]).item() if spent[1] else 0.0

    def wrong(self, group: dist.ProcessGroup | None) -> int:
        """Gradients of a checked step that are not the mean over the ranks, of all ranks."""
        module = self.work.module
        if isinstance(module, Synthetic):
            # Small integers and the rank: their mean is known.
            memory = module.gradients.memory
            kept = memory.clone()
            memory.copy_(torch.arange(memory.numel()) % 97).add_(dist.get_rank())
            self.step(group)
            wrong = 0
            for parameter in module.parameters():
                assert parameter.grad is not None
                count = parameter.numel()
                mean = torch.arange(count) % 97 + (self._workers - 1) / 2
                wrong += int((~torch.isclose(parameter.grad.flatten(), mean, atol=1e-4)).sum())
            memory.copy_(kept)
        else:
            wrong = self._wrong_real(module, group)
        everywhere = torch.tensor([wrong])
        dist.all_reduce(everywhere, group=self._gloo)
        return int(everywhere.item())

    def _wrong_real(self, module: nn.Module, group: dist.ProcessGroup | None) -> int:
        """Compares with the mean of the ranks' own gradients, which Gloo makes."""
        optimizer, self._optimizer = self._optimizer, None
        self.model.zero_grad(set_to_none=False)
        with self.model.no_sync():
            torch.autograd.backward(self.model(self.work.batch))
        own = [p.grad.clone() for p in module.parameters() if p.grad is not None]
        for gradient in own:
            dist.all_reduce(gradient, group=self._gloo)
            gradient.div_(self._workers)
        self.step(group)
        self._optimizer = optimizer
        wrong = 0
        for parameter, mean in zip(module.parameters(), own, strict=True):
            assert parameter.grad is not None
            scale = float(mean.abs().max()) + 1e-12
            wrong += int(((parameter.grad - mean).abs() > 1e-5 * scale + 1e-7).sum())
        return wrong


def main() -> None:
    """Steps in turns; rank 0 prints one JSON line."""
    asked = asked_of(StepOrder)
    torch.set_num_threads(1)
    dist.init_process_group("ina")
    gloo = dist.new_group(backend="gloo")
    rank = dist.get_rank()
    work = MODELS[asked.model](asked.compute_ms / 1e3, rank)
    turns = Turns(work, gloo)
    groups: list[tuple[str, dist.ProcessGroup | None]] = [("ina", None), ("gloo", gloo)]
    wrong = {name: turns.wrong(group) for name, group in groups}
    for _ in range(_WARM_UP - 1):
        for _, group in groups:
            turns.step(group)
    computes = [turns.compute_s() for _ in range(3)]
    turns.buckets = 0
    turns.step(None)
    buckets = turns.buckets
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name, _ in groups}
    begun = time.perf_counter()
    for turn in range(asked.repeats):
        for name, group in groups:
            samples[name].append(turns.step(group))
        late = torch.tensor([int(time.perf_counter() - begun > asked.seconds and turn >= 2)])
        dist.broadcast(late, 0, group=gloo)
        if late.item():
            break
    if rank == 0:
        elems = sum(parameter.numel() for parameter in work.module.parameters())
        record = {
            **{"elems": elems, "buckets": buckets, "unit": work.unit},
            **{"items": work.items, "compute_s": statistics.median(computes), "wrong": wrong},
            "times_s": {name: [pair[0] for pair in found] for name, found in samples.items()},
            "cpu_s": {name: [pair[1] for pair in found] for name, found in samples.items()},
        }
        print(json.dumps(record), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
