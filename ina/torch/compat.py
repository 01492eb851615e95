"""What differs between releases of torch: 2.6 to 2.14 and, as far as their API goes on, later ones.

Run with 2.11.0, 2.13.0 and 2.14.1. What is newer or older is asked for, never concluded from a
version.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import ProcessGroup, ReduceOp, Work


def method_of_group(*names: str) -> str:
    """The first of a method's names that this torch's process groups have, newest name first.

    torch 2.13 has ``all_gather_single``, ``reduce_scatter_single``, ``all_to_all_single`` and their
    coalesced forms beside the older names; before it there were only those.
    """
    for name in names:
        if hasattr(ProcessGroup, name):
            return name
    return names[-1]  # AttributeError where it is called says what is missing


ALL_GATHER_SINGLE = method_of_group("all_gather_single", "_allgather_base")
ALL_GATHER_COALESCED = method_of_group(
    "all_gather_single_coalesced", "allgather_into_tensor_coalesced"
)
REDUCE_SCATTER_SINGLE = method_of_group("reduce_scatter_single", "_reduce_scatter_base")
REDUCE_SCATTER_COALESCED = method_of_group(
    "reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced"
)


def reduce_scatter(
    output: torch.Tensor,
    inputs: torch.Tensor,
    op: ReduceOp | ReduceOp.RedOpType,
    group: ProcessGroup,
) -> Work:
    """Starts it, for a group of which this process is a rank."""
    start: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
    work: Work = start(output, inputs, op=op, group=group, async_op=True)
    return work
