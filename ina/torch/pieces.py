"""What the session sums for a collective, and how the result gets to where it belongs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch.distributed import ReduceOp

from ina.protocol.collective import Reduction
from ina.torch.blocks import BlockChoice
from ina.torch.coo import CooRows
from ina.torch.dense import check_writable, memory_of
from ina.torch.paths import network_op
from ina.torch.work import Piece

AnyOp = ReduceOp | ReduceOp.RedOpType


def whole(tensor: torch.Tensor) -> Piece:
    """For all_reduce: in place; a tensor that is not contiguous travels in a contiguous copy.

    Raises :class:`~ina.torch.errors.OverlappingTensorError`, as the others do.
    """
    if tensor.is_contiguous():
        return Piece(tensor, tensor)
    check_writable(tensor)
    buffer = tensor.detach().contiguous()
    return Piece(tensor, buffer, lambda: memory_of(tensor).copy_(buffer))


def by_blocks(tensor: torch.Tensor, op: AnyOp, choice: BlockChoice, bucket: int | None) -> Piece:
    """For all_reduce, and where its blocks, or a sparse tensor's rows, are what is sent, those.

    ``bucket``: where it is a bucket of gradients; tensors that are none are alike by size.
    """
    if tensor.layout is torch.sparse_coo:
        reduction = network_op(op)
        assert reduction is not None
        return rows(tensor, reduction)
    piece = whole(tensor)
    alike = (tensor.numel(), tensor.dtype) if bucket is None else bucket
    part = choice.part(piece.buffer, alike)
    return piece if part is None else replace(piece, part=part)


def rows(tensor: torch.Tensor, op: Reduction) -> Piece:
    """For all_reduce of a sparse COO tensor in CPU memory: gets what any rank has, coalesced."""
    part = CooRows(tensor, op)

    def deliver() -> None:
        assert part.summed is not None
        tensor.copy_(part.summed)

    return Piece(tensor, tensor, deliver, part)


def scattered(output: torch.Tensor, inputs: torch.Tensor, rank: int) -> Piece:
    """For reduce_scatter: all of ``inputs`` is summed in a copy, ``output`` gets this rank's part.

    ``inputs`` has the elements of ``output`` for each rank, one after the other.
    """
    buffer = inputs.detach().clone(memory_format=torch.contiguous_format).view(-1)
    return _part(output, buffer, rank)


def scattered_list(output: torch.Tensor, inputs: Sequence[torch.Tensor], rank: int) -> Piece:
    """The same for a tensor for each rank."""
    return _part(output, torch.cat([one.detach().reshape(-1) for one in inputs]), rank)


def _part(output: torch.Tensor, buffer: torch.Tensor, rank: int) -> Piece:
    check_writable(output)
    part = buffer[rank * output.numel() :][: output.numel()]
    return Piece(output, buffer, lambda: memory_of(output).copy_(part.view(output.shape)))
