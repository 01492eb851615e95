"""How much memory a worker needs above the tensor that it reduces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import ina.torch

_PIECE_ELEMS = 1 << 20


def measure(
    elems: int, dtype: torch.dtype, gloo: dist.ProcessGroup, spoil: int = 0
) -> dict[str, Any]:
    """Peak bytes above the tensor of one all_reduce, with ina and with Gloo: the largest of ranks.

    The process that runs the embedded switch is left out where there are others. Counted by the
    kernel (VmHWM), which starts anew before each. Collective; ``wrong_*`` are of all ranks, of ina
    with ``spoil`` values made wrong on each.
    """
    rank, workers = dist.get_rank(), dist.get_world_size()
    tensor = torch.empty(elems, dtype=dtype)
    small = torch.ones(1 << 16, dtype=dtype)
    found: dict[str, Any] = {}
    groups: list[tuple[str, dist.ProcessGroup | None]] = [("ina", None), ("gloo", gloo)]
    for name, group in groups:
        dist.all_reduce(small.fill_(1), group=group)  # what is allocated once is there now
        tensor.fill_(rank + 1)
        before = _reset_peak_bytes()
        dist.barrier(group=gloo)
        dist.all_reduce(tensor, group=group)
        above = torch.tensor([max(0, peak_bytes() - before)])
        if ina.torch.stats().switch is not None:
            above.zero_()
        dist.all_reduce(above, dist.ReduceOp.MAX, group=gloo)
        if name == "ina":
            tensor[:spoil] += 1
        wanted = workers * (workers + 1) // 2
        wrong = 0
        for first in range(0, elems, _PIECE_ELEMS):
            wrong += int((tensor[first : first + _PIECE_ELEMS] != wanted).sum())
        all_wrong = torch.tensor([wrong])
        dist.all_reduce(all_wrong, group=gloo)
        found[f"{name}_above_bytes"] = int(above.item())
        found[f"wrong_{name}"] = int(all_wrong.item())
    return found


def peak_bytes() -> int:
    """The largest resident size of this process since the last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise OSError("/proc/self/status has no VmHWM")


def _reset_peak_bytes() -> int:
    """Forgets the peak; returns the size now."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()
