"""reduce_scatter: each rank sends all its values, and gets its part of the sum."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import ReduceOp, ReduceScatterOptions, Work

from ina.torch import compat, pieces
from ina.torch.collectives import AnyOp, Call, Collectives, options_and_timeout
from ina.torch.dense import waited
from ina.torch.paths import kind, network_op, why_not_network
from ina.torch.pieces import Inputs


class ReduceScatter(Collectives):
    """The part of a process group that scatters; torch has a name for each form of arguments."""

    def reduce_scatter(  # type: ignore[override]  # one method for two overloads
        self,
        output: torch.Tensor | Sequence[torch.Tensor],
        inputs: Sequence[Any],
        *args: Any,
        **kwargs: Any,
    ) -> Work:
        """``inputs``: a tensor for each rank, or a list of such lists for a list of outputs."""
        if isinstance(output, torch.Tensor):
            outputs, lists = [output], [inputs]
        else:
            outputs, lists = list(output), list(inputs)
        call = ("reduce_scatter", (output, inputs, *args), kwargs)
        return self._reduce_scatter(outputs, lists, *_op_and_timeout(args, kwargs), call)

    def reduce_scatter_single(  # type: ignore[override]  # newer and older torch pass it otherwise
        self, output: torch.Tensor, inputs: torch.Tensor, *args: Any, **kwargs: Any
    ) -> Work:
        """``inputs``: one tensor with the elements for rank 0, for rank 1 and so on."""
        call = (compat.REDUCE_SCATTER_SINGLE, (_row(output), inputs, *args), kwargs)
        return self._reduce_scatter([output], [inputs], *_op_and_timeout(args, kwargs), call)

    _reduce_scatter_base = reduce_scatter_single  # type: ignore[assignment]  # its older name

    def reduce_scatter_single_coalesced(  # type: ignore[override]
        self,
        outputs: Sequence[torch.Tensor],
        inputs: Sequence[torch.Tensor],
        *args: Any,
        **kwargs: Any,
    ) -> Work:
        """Several of them, completed together; functional reduce_scatter comes here."""
        rows = [_row(output) for output in outputs]
        call = (compat.REDUCE_SCATTER_COALESCED, (rows, inputs, *args), kwargs)
        return self._reduce_scatter(outputs, inputs, *_op_and_timeout(args, kwargs), call)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced  # type: ignore[assignment]

    def _reduce_scatter(
        self,
        outputs: Sequence[torch.Tensor],
        inputs: Sequence[Inputs],
        op: AnyOp,
        timeout: timedelta | None,
        call: Call,
    ) -> Work:
        """``call`` is what to ask the inner group where the network cannot do it."""
        outputs = [waited(output) for output in outputs]
        inputs = [
            waited(one) if isinstance(one, torch.Tensor) else [waited(part) for part in one]
            for one in inputs
        ]
        if not self._sums_on(outputs) or not _fits(outputs, inputs, self.size()):
            return self._forward(*call)  # which says what does not fit
        for output in outputs:
            reason = why_not_network(output, op)
            if reason is not None:
                self._paths.fallback(kind("reduce_scatter", op, output.dtype), reason)
                return self._forward(*call, counted=True)
        if self._is_on_cpu(outputs):
            reduction = network_op(op)
            assert reduction is not None
            parts = [
                pieces.scattered(output, one, reduction)
                for output, one in zip(outputs, inputs, strict=True)
            ]
        else:
            parts = [
                pieces.scattered_by_sum(output, one, self.rank())
                for output, one in zip(outputs, inputs, strict=True)
            ]
        return self._sum("reduce_scatter", parts, op, timeout)


def _row(output: torch.Tensor) -> torch.Tensor:
    """The same memory with a dimension: for one without, Gloo ends the process by a signal."""
    return output.detach().view(1) if output.dim() == 0 else output


def _op_and_timeout(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[AnyOp, timedelta | None]:
    first, timeout = options_and_timeout(ReduceScatterOptions, args, kwargs, "op")
    op = first.reduceOp if isinstance(first, ReduceScatterOptions) else first
    return (ReduceOp.SUM if op is None else op), timeout


def _fits(outputs: Sequence[torch.Tensor], inputs: Sequence[Inputs], ranks: int) -> bool:
    """Whether each output has an input with its elements, type and device for each rank."""
    if len(outputs) != len(inputs):
        return False
    for output, given in zip(outputs, inputs, strict=True):
        if isinstance(given, torch.Tensor):
            own = [given]
            elems = [output.numel() * ranks]
        else:
            own = list(given)
            elems = [output.numel()] * ranks
        if [one.numel() for one in own] != elems:
            return False
        if any(one.dtype != output.dtype or one.device != output.device for one in own):
            return False
    return True
