"""The older names of process groups' methods, as in torch before 2.13."""

from __future__ import annotations

import os
import subprocess
import sys

from ina.torch import compat

_OLDER = """
from torch._C._distributed_c10d import ProcessGroup
for name in {newer!r}:
    delattr(ProcessGroup, name)
import torch
import torch.distributed as dist
import ina.torch
dist.init_process_group("ina", store=dist.HashStore(), rank=0, world_size=1)
group, opts, out = dist.group.WORLD, dist.ReduceScatterOptions(), torch.zeros(3)
group._reduce_scatter_base(out, torch.ones(3), opts).wait()
assert out.eq(1).all()
group.reduce_scatter_tensor_coalesced([out], [torch.full((3,), 2.0)], opts).wait()
assert out.eq(2).all()
opts.reduceOp = dist.ReduceOp.MAX
group._reduce_scatter_base(out, torch.full((3,), 3.0), opts).wait()
group.reduce_scatter_tensor_coalesced([out], [torch.full((3,), 4.0)], opts).wait()
assert out.eq(4).all()
group._allgather_base(out, torch.full((3,), 5.0)).wait()
assert out.eq(5).all()
stats = ina.torch.stats()
print(stats.network_reduce_scatters, stats.fallbacks, stats.other_collectives,
      stats.network_all_gathers)
dist.destroy_process_group()
"""
_NEWER = [
    name
    for name in (
        "all_gather_single",
        "all_gather_single_coalesced",
        "reduce_scatter_single",
        "reduce_scatter_single_coalesced",
        "all_to_all_single",
    )
    if compat.method_of_group(name, "") == name
]


def test_older_names() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _OLDER.format(newer=_NEWER)],
        env={name: value for name, value in os.environ.items() if not name.startswith("INA_")},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "2 2 {} 1\n"


def test_a_method_that_no_torch_has_keeps_its_last_name() -> None:
    assert compat.method_of_group("frobnicate", "defrobnicate") == "defrobnicate"
    assert compat.method_of_group("frobnicate", "allreduce", "barrier") == "allreduce"
