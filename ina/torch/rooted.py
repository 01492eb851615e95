"""broadcast and reduce, of which one rank alone gives, or gets; and barrier, where none does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import BarrierOptions, BroadcastOptions, ReduceOp, ReduceOptions, Work

from ina.torch import moves, pieces
from ina.torch.collectives import AnyOp, Collectives, options_and_timeout
from ina.torch.dense import waited
from ina.torch.paths import kind, network_op, why_not_network

_Tensors = torch.Tensor | Sequence[torch.Tensor]


class Rooted(Collectives):
    """That part of a process group."""

    def broadcast(  # type: ignore[override]  # one method for two overloads
        self, tensors: _Tensors, *args: Any, **kwargs: Any
    ) -> Work:
        """All tensors become the root's. ([tensor], options) or (tensor, root, timeout)."""
        call = ("broadcast", (tensors, *args), kwargs)
        first, timeout = options_and_timeout(BroadcastOptions, args, kwargs, "root")
        root = first.rootRank if isinstance(first, BroadcastOptions) else int(first or 0)
        tensor = _only(tensors)
        reason = None if tensor is None else self._why_not_moved([tensor])
        if tensor is None or reason is not None:
            return self._forward(*call, reason=reason)
        piece = moves.broadcast(tensor, root, is_root=root == self.rank())
        return self._move("broadcast", [piece], timeout)

    def reduce(  # type: ignore[override]  # one method for two overloads
        self, tensors: _Tensors, *args: Any, **kwargs: Any
    ) -> Work:
        """Sum or average on the root. ([tensor], options) or (tensor, root, op, timeout)."""
        call = ("reduce", (tensors, *args), kwargs)
        root, op, timeout = _reduction(args, kwargs)
        tensor = _only(tensors)
        if tensor is None or not self._is_on_cpu([tensor]):
            return self._forward(*call)
        reason = why_not_network(tensor, op)
        if reason is not None:
            self._paths.fallback(kind("reduce", op, tensor.dtype), reason)
            return self._forward(*call, counted=True)
        reduction = network_op(op)
        assert reduction is not None
        piece = pieces.reduced(tensor, reduction, root, is_root=root == self.rank())
        return self._sum("reduce", [piece], op, timeout)

    def barrier(self, *args: Any, **kwargs: Any) -> Work:
        """Completes once all ranks have come to it. (options) or (timeout)."""
        if not self._is_on_cpu(()):
            return self._forward("barrier", args, kwargs)
        first = args[0] if args else kwargs.get("opts", kwargs.get("timeout"))
        timeout = first.timeout if isinstance(first, BarrierOptions) else first
        return self._move("barrier", [moves.barrier()], timeout)


def _reduction(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[int, AnyOp, timedelta | None]:
    first = args[0] if args else kwargs.get("opts", kwargs.get("root"))
    if isinstance(first, ReduceOptions):
        return first.rootRank, first.reduceOp, first.timeout
    op, timeout = options_and_timeout(ReduceOptions, args[1:], kwargs, "op")
    return int(first or 0), ReduceOp.SUM if op is None else op, timeout


def _only(tensors: _Tensors) -> torch.Tensor | None:
    """The one that there is."""
    if isinstance(tensors, torch.Tensor):
        return waited(tensors)
    return waited(tensors[0]) if len(tensors) == 1 else None
