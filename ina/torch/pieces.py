"""What the session sums for a collective, and how the result gets to where it belongs.

Of what is moved :mod:`ina.torch.moves` says that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch.distributed import ReduceOp

from ina.protocol.collective import Collective, CollectiveKind, Reduction
from ina.torch.blocks import BlockChoice
from ina.torch.coo import CooRows
from ina.torch.dense import check_writable, is_plain, joined, memory_of, plain, share_memory
from ina.torch.paths import VALUE_TYPES, network_op
from ina.torch.work import Piece

AnyOp = ReduceOp | ReduceOp.RedOpType
Inputs = torch.Tensor | Sequence[torch.Tensor]


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


def scattered(output: torch.Tensor, inputs: Inputs, op: Reduction) -> Piece:
    """For reduce_scatter: each rank gives all of ``inputs``, and gets its part of the sum.

    ``inputs`` has the elements of ``output`` for each rank, one after the other, or is a list of a
    tensor for each. Only what is not contiguous, or shares memory with the output, is copied.
    """
    check_writable(output)
    source = _in_a_row(inputs)
    if share_memory(source, output):
        source = source.clone()
    kind = CollectiveKind.REDUCE_SCATTER
    what = Collective(VALUE_TYPES[output.dtype], output.numel(), op, kind)
    return written(output, source, what)


def scattered_by_sum(output: torch.Tensor, inputs: Inputs, rank: int) -> Piece:
    """The same by an all-reduce of a copy, of which this rank takes its part; for staging."""
    check_writable(output)
    buffer = _in_a_row(inputs).clone()
    part = buffer[rank * output.numel() :][: output.numel()]
    return Piece(output, buffer, lambda: memory_of(output).copy_(part.view(output.shape)))


def reduced(tensor: torch.Tensor, op: Reduction, root: int, *, is_root: bool) -> Piece:
    """For reduce: in place on the root; the others' tensors stay as they are."""
    check_writable(tensor)  # on all ranks, which then refuse it alike
    source = plain(tensor)
    kind = CollectiveKind.REDUCE
    what = Collective(VALUE_TYPES[tensor.dtype], tensor.numel(), op, kind, root)
    if not is_root:
        return Piece(tensor, source, what=what)
    return written(tensor, source, what)


def written(output: torch.Tensor, source: torch.Tensor, what: Collective) -> Piece:
    """The result comes to ``output`` itself if it is plain, else to memory that is copied there.

    Memory of the output's type, and of as many elements.
    """
    if is_plain(output):
        return Piece(output, source, what=what, target=output)
    target = torch.empty(output.shape, dtype=output.dtype, device=output.device)
    return Piece(output, source, lambda: memory_of(output).copy_(target), what=what, target=target)


def _in_a_row(inputs: Inputs) -> torch.Tensor:
    """All elements, one after the other; a copy where they do not lie so."""
    if isinstance(inputs, torch.Tensor):
        return plain(inputs)
    found = joined(inputs)
    return torch.cat([one.detach().reshape(-1) for one in inputs]) if found is None else found
