"""What the session moves for a collective, as bytes, and where they come to."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ina.protocol.collective import Collective, CollectiveKind
from ina.protocol.spec import ValueType
from ina.torch.dense import (
    check_writable,
    is_plain,
    joined,
    memory_of,
    octets,
    plain,
    share_memory,
    writing,
)
from ina.torch.work import Piece


def gathered(output: torch.Tensor, own: torch.Tensor, rank: int) -> Piece:
    """For all_gather: ``output`` has the elements of ``own`` for each rank, one after the other.

    Raises :class:`~ina.torch.errors.OverlappingTensorError`, as the others do.
    """
    check_writable(output)
    into = output if is_plain(output) else _like(output)
    deliver = None if into is output else lambda: memory_of(output).copy_(into)
    target = octets(into)
    return Piece(output, _own(own, target, rank), deliver, what=_gather(own), target=target)


def gathered_list(outputs: Sequence[torch.Tensor], own: torch.Tensor, rank: int) -> Piece:
    """The same into a tensor for each rank; in place where those lie one behind the other."""
    for output in outputs:
        check_writable(output)
    first, *others = outputs
    what = _gather(own)
    into = joined(outputs)
    if into is not None:
        target = octets(into)
        return Piece(first, _own(own, target, rank), what=what, target=target, others=others)
    parts = torch.empty(len(outputs), first.numel(), dtype=first.dtype)

    def deliver() -> None:
        for output, part in zip(outputs, parts, strict=True):
            with writing(output):
                memory_of(output).copy_(part.view(output.shape))

    return Piece(first, octets(plain(own)), deliver, what=what, target=octets(parts), others=others)


def broadcast(tensor: torch.Tensor, root: int, *, is_root: bool) -> Piece:
    """For broadcast: in place; the root's tensor is only read."""
    what = Collective(ValueType.BYTES, tensor.nbytes, kind=CollectiveKind.BROADCAST, root=root)
    check_writable(tensor)  # on the root, too: all ranks refuse it alike
    if is_root:
        return Piece(tensor, octets(plain(tensor)), what=what)
    if is_plain(tensor):
        return Piece(tensor, octets(tensor), what=what)
    into = _like(tensor)
    return Piece(tensor, octets(into), lambda: memory_of(tensor).copy_(into), what=what)


def barrier() -> Piece:
    """Of nothing."""
    nothing = torch.empty(0, dtype=torch.int32)
    return Piece(nothing, nothing, what=Collective(ValueType.INT32, 0, kind=CollectiveKind.BARRIER))


def _gather(own: torch.Tensor) -> Collective:
    return Collective(ValueType.BYTES, own.nbytes, kind=CollectiveKind.ALL_GATHER)


def _own(tensor: torch.Tensor, target: torch.Tensor, rank: int) -> torch.Tensor:
    """Its bytes, which may lie where they come to, but nowhere else in ``target``."""
    source = octets(plain(tensor))
    place = target[rank * source.numel() :][: source.numel()]
    if source.data_ptr() == place.data_ptr() or not share_memory(source, target):
        return source
    return source.clone()


def _like(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty(tensor.shape, dtype=tensor.dtype)
