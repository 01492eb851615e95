"""PyTorch backend ``ina``: ``import ina.torch``, then ``init_process_group("ina")``.

all_reduce SUM and AVG of float32, float16, bfloat16 and int32 CPU tensors is summed by the network;
every other collective goes through an inner Gloo group, which the log says once for each kind.
``docs/pytorch.md`` explains, :mod:`ina.torch.env` lists the environment variables.
"""

from __future__ import annotations

try:
    import torch.distributed as dist
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "ina.torch needs PyTorch: pip install 'ina[torch]'", name=error.name
    ) from error
from torch._C._distributed_c10d import _DistributedBackendOptions

from ina.torch import exit as _exit
from ina.torch.errors import NotInaGroupError
from ina.torch.process_group import ProcessGroupIna
from ina.torch.stats import GroupStats

__all__ = ["GroupStats", "ProcessGroupIna", "stats"]


def _create(options: _DistributedBackendOptions, _: object) -> ProcessGroupIna:
    return ProcessGroupIna(
        options.store,
        options.group_rank,
        options.group_size,
        options.timeout,
        group_id=options.group_id,
        # torch passes no ranks for the default group
        sub_group=len(options.global_ranks_in_group) > 0,
    )


def stats(group: dist.ProcessGroup | None = None) -> GroupStats:
    """Counters of ``group`` (default: the default group) in this process.

    Raises :class:`ina.torch.errors.NotInaGroupError` if its backend is not ``ina``.
    """
    group = group if group is not None else dist.group.WORLD
    if not isinstance(group, ProcessGroupIna):
        raise NotInaGroupError(f"stats: the process group is {type(group).__name__}, not ina's")
    return group.stats()


if not hasattr(dist.Backend, "INA"):
    dist.Backend.register_backend("ina", _create, extended_api=True, devices=["cpu"])
    _exit.install()
