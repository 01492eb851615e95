"""FSDP2 on CPU without waiting: reduce_scatters go on while backward does.

There FSDP2 has no streams: it waits for each reduce_scatter, and then looks at what came. Where it
only keeps the result, as it does at the first backward of a step, that may come as late as at the
end of backward.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.autograd import Variable
from torch.distributed import ProcessGroup, ReduceOp, Work

from ina.errors import InvalidInputError
from ina.torch import compat
from ina.torch.errors import NotShardedError

_log = logging.getLogger("ina.torch")

AnyOp = ReduceOp | ReduceOp.RedOpType


def overlap(model: nn.Module, *, under_way: int = 2) -> None:
    """Let FSDP2's collectives of ``model`` go on while it computes; call it after `fully_shard`.

    Each reduce_scatter is waited for at the end of backward, or at once where its result is used
    before: the log says why, once for each reason. At most so many are ``under_way``, each of which
    keeps its input. The all_gathers of the next module in backward go on, too; those in forward do
    with ``set_modules_to_forward_prefetch``. For modules whose parameters are in CPU memory; others
    stay as they are. Whatever a rank's group is made of: all ranks call it alike.

    What fails is raised by ``backward``. Raises :class:`NotShardedError`, InvalidInputError.
    """
    if under_way < 1:
        raise InvalidInputError(f"overlap: under_way is {under_way}, must be at least 1")
    sharded: list[Any] = [
        module for module in model.modules() if hasattr(module, "_get_fsdp_state")
    ]
    if not sharded:
        raise NotShardedError(f"overlap: no module of {type(model).__name__} is fully_shard's")
    works = Works(under_way)
    for module in sharded:
        state = module._get_fsdp_state()
        groups = getattr(state, "_fsdp_param_groups", None)
        for group in [state._fsdp_param_group] if groups is None else groups:
            if group is not None and group.device.type == "cpu":
                _overlap_group(group, works)


def _overlap_group(group: Any, works: Works) -> None:
    if not hasattr(group, "_reduce_scatter_comm"):
        raise NotShardedError(
            f"overlap: FSDP2 of torch {torch.__version__} takes no other reduce_scatter; 2.10 does"
        )
    group._reduce_scatter_comm = LateReduceScatter(group, works)
    group.unshard_async_op = True


class Works:
    """What is under way of one model, oldest first."""

    def __init__(self, most: int) -> None:
        """``most``: of them."""
        self._most = most
        self._works: deque[Work] = deque()

    def add(self, work: Work) -> None:
        """Waits for the oldest where there are too many; raises their errors."""
        self._works.append(work)
        while len(self._works) > self._most:
            self._works.popleft().wait()

    def wait(self) -> None:
        """Wait for all; raises the first error."""
        while self._works:
            self._works.popleft().wait()


class LateReduceScatter:
    """What FSDP2 calls for one group of parameters, as its own ``ReduceScatter``."""

    def __init__(self, group: Any, works: Works) -> None:
        """``group``: torch's ``FSDPParamGroup``."""
        self._group, self._works = group, works
        self._said: set[str] = set()

    def allocate(
        self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device
    ) -> torch.Tensor:
        """Memory for the input, or for the output."""
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: ProcessGroup,
        op: AnyOp,
        async_op: bool = False,
    ) -> Work:
        """Start it; wait for it only where that has to be."""
        work = compat.reduce_scatter(output_tensor, input_tensor, op, group)
        why = self._why_at_once(output_tensor, op)
        self._works.add(work)
        if why is None:
            Variable._execution_engine.queue_callback(self._works.wait)
        else:
            self._say(why)
            self._works.wait()
        return work

    def _why_at_once(self, output: torch.Tensor, op: AnyOp) -> str | None:
        """What uses the result before the end of backward; None: nothing does."""
        group = self._group
        parameters = [one.sharded_param for one in group.fsdp_params]
        if torch._C._current_graph_task_id() == -1:
            return "it is not called by backward"
        if op != ReduceOp.AVG:
            return "the sum is divided after it"
        if output.dtype != group._orig_dtype:
            return "gradients are reduced in another type than their parameters have"
        if hasattr(group.mesh_info, "replicate_process_group"):
            return "the replicas' gradients are summed after it"
        if group._all_reduce_hook is not None:
            return "there is an all_reduce hook"
        if any(one.offload_to_cpu for one in group.fsdp_params):
            return "gradients are offloaded"
        if any(parameter.grad is not None for parameter in parameters):
            return "there are gradients that it is added to"
        if any(getattr(one, "_post_accumulate_grad_hooks", None) for one in parameters):
            return "a parameter has a hook that runs after it"
        return None

    def _say(self, why: str) -> None:
        if why in self._said:
            return
        self._said.add(why)
        _log.info("ina: a reduce_scatter is waited for at once because %s", why)
