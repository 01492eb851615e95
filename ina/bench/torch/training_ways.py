"""The ways in which ``ina bench training`` lets gradients travel, each by its name.

A way has a group of its own, so that each run begins with a new job.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

import ina.torch
from ina.bench.torch.training_tasks import TrainedTask

TIMEOUT = timedelta(minutes=10)
"""Of an operation: other programs may have this machine's cores for long."""
_BUCKET_MB = 25
"""All in one: what is measured are losses, and each bucket wakes all processes."""


@dataclass
class Prepared:
    """A model that is ready to train."""

    group: dist.ProcessGroup
    model: nn.Module
    parameters: list[torch.Tensor] | None
    """That all ranks have alike; None: each has its part."""
    close: list[Callable[[], None]] = field(default_factory=list)


def ddp(wire: str, task: TrainedTask, net: nn.Module) -> Prepared:
    """DDP over a group whose floats travel so; ``gloo``: over Gloo."""
    group = _group(wire)
    model = DistributedDataParallel(
        net, process_group=group, bucket_cap_mb=_BUCKET_MB, init_sync=False
    )
    return Prepared(group, model, list(net.parameters()))


def lowbit(settings: dict[str, Any], task: TrainedTask, net: nn.Module) -> Prepared:
    """DDP with the hook of few bits."""
    found = ddp("32", task, net)
    assert isinstance(found.model, DistributedDataParallel)
    state = ina.torch.LowbitState(found.model, found.group, **settings)
    found.model.register_comm_hook(state, ina.torch.lowbit_hook)
    found.close.append(state.close)
    return found


def topk(ratio: float, task: TrainedTask, net: nn.Module) -> Prepared:
    """DDP with the hook of the largest blocks."""
    found = ddp("32", task, net)
    assert isinstance(found.model, DistributedDataParallel)
    state = ina.torch.TopkState(found.model, found.group, ratio=ratio)
    found.model.register_comm_hook(state, ina.torch.topk_hook)
    found.close.append(state.close)
    return found


def fsdp2(wire: str, task: TrainedTask, net: nn.Module) -> Prepared:
    """Sharded; gradients are reduced as bfloat16."""
    group = _group(wire)
    mesh = DeviceMesh.from_group(group, "cpu")
    policy = MixedPrecisionPolicy(reduce_dtype=torch.bfloat16)
    for part in task.shards(net):
        fully_shard(part, mesh=mesh, mp_policy=policy)
    fully_shard(net, mesh=mesh, mp_policy=policy)
    return Prepared(group, net, None)


def _group(wire: str) -> dist.ProcessGroup:
    ranks = list(range(dist.get_world_size()))
    if wire == "gloo":
        group = dist.new_group(ranks, timeout=TIMEOUT, backend="gloo")
    else:
        options: Any = ina.torch.Options(wire=wire)
        group = dist.new_group(ranks, timeout=TIMEOUT, backend="ina", pg_options=options)
    assert isinstance(group, dist.ProcessGroup)
    return group


PREPARE: dict[str, Callable[[TrainedTask, nn.Module], Prepared]] = {
    "float32": partial(ddp, "32"),
    "gloo": partial(ddp, "gloo"),
    "16": partial(ddp, "16"),
    "8": partial(ddp, "8"),
    "8-stochastic": partial(ddp, "8-stochastic"),
    "lowbit8": partial(lowbit, {}),
    "lowbit8-nohadamard": partial(lowbit, {"hadamard": False}),
    "lowbit8-nofeedback": partial(lowbit, {"error_feedback": False}),
    "lowbit16": partial(lowbit, {"bits": 16}),
    "topk": partial(topk, 0.01),
    "topk10": partial(topk, 0.1),
    "fsdp2-16": partial(fsdp2, "16"),
    "fsdp2-gloo": partial(fsdp2, "gloo"),
}
"""By the names of :data:`ina.bench.training.WAYS`."""
