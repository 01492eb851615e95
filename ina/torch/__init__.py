"""PyTorch backend ``ina``: ``init_process_group("ina")``.

Where ina is installed, torch finds the backend (:mod:`ina_torch_autoload`); ``import ina.torch`` is
for what a script names of it, and where torch's autoload is off or ina is only on the path.

all_reduce, reduce_scatter and reduce, SUM and AVG, of float32, float16, bfloat16 and int32 CPU
tensors are summed by the network, which moves what all_gather and broadcast are given, too; other
collectives go through an inner Gloo group, which the log says once for each kind.
``docs/pytorch.md`` explains, :mod:`ina.torch.env` lists the environment variables.
"""

from __future__ import annotations

try:
    import torch.distributed as dist
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "ina.torch needs PyTorch: pip install torch", name=error.name
    ) from error
from torch._C._distributed_c10d import _DistributedBackendOptions

from ina import log
from ina.torch.devices import DEVICES
from ina.torch.embedding import (
    EmbeddingBag,
    EmbeddingBags,
    EmbeddingOptimizer,
    EmbeddingOptions,
    Table,
)
from ina.torch.env import Options, Settings
from ina.torch.errors import NotInaGroupError
from ina.torch.hook import HookState, allreduce_hook
from ina.torch.lowbit import LowbitState, lowbit_hook
from ina.torch.overlap import overlap
from ina.torch.process_group import ProcessGroupIna, close_at_exit
from ina.torch.stats import GroupStats
from ina.torch.topk import TopkState, topk_hook

__all__ = [
    "EmbeddingBag",
    "EmbeddingBags",
    "EmbeddingOptimizer",
    "EmbeddingOptions",
    "GroupStats",
    "HookState",
    "LowbitState",
    "Options",
    "ProcessGroupIna",
    "Table",
    "TopkState",
    "allreduce_hook",
    "lowbit_hook",
    "overlap",
    "stats",
    "topk_hook",
]


def create(options: _DistributedBackendOptions, backend_options: object) -> ProcessGroupIna:
    """What ``init_process_group`` and ``new_group`` call; raises what the group's class raises."""
    settings = Settings.from_environ()
    if isinstance(backend_options, Options):
        settings = backend_options.over(settings)
    return ProcessGroupIna(
        options.store,
        options.group_rank,
        options.group_size,
        options.timeout,
        group_id=options.group_id,
        # torch passes none for the default group
        ranks=options.global_ranks_in_group or None,
        settings=settings,
    )


def stats(group: dist.ProcessGroup | None = None) -> GroupStats:
    """Counters of ``group`` (default: the default group) in this process.

    Raises :class:`ina.torch.errors.NotInaGroupError` if its backend is not ``ina``.
    """
    group = group if group is not None else dist.group.WORLD
    if not isinstance(group, ProcessGroupIna):
        raise NotInaGroupError(f"stats: the process group is {type(group).__name__}, not ina's")
    return group.stats()


log.from_environ()
dist.Backend.register_backend("ina", create, extended_api=True, devices=DEVICES)
close_at_exit()
