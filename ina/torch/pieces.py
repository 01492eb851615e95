"""What the session sums for a collective, and how the result gets to where it belongs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch._C._distributed_c10d import _create_work_from_future  # type: ignore[attr-defined]
from torch.distributed import Work
from torch.distributed._functional_collectives import AsyncCollectiveTensor
from torch.futures import Future

from ina.torch.work import Piece


def waited(tensor: torch.Tensor) -> torch.Tensor:
    """The result of an earlier functional collective once it is there; others as they are."""
    if not isinstance(tensor, AsyncCollectiveTensor):
        return tensor
    there: torch.Tensor = tensor.trigger_wait()  # type: ignore[no-untyped-call]
    return there


def whole(tensor: torch.Tensor) -> Piece:
    """For all_reduce: in place; a tensor that is not contiguous travels in a contiguous copy."""
    if tensor.is_contiguous():
        return Piece(tensor, tensor)
    buffer = tensor.detach().contiguous()
    return Piece(tensor, buffer, lambda: tensor.copy_(buffer))


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
    part = buffer[rank * output.numel() :][: output.numel()]
    return Piece(output, buffer, lambda: output.copy_(part.view(output.shape)))


def dense(tensors: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], Callable[[Work], Work]]:
    """Contiguous tensors for a backend that works in place, and what to do with its work.

    That is: nothing, or copy the results to the tensors that are not contiguous.
    """
    strided = [one.layout is torch.strided for one in tensors]
    buffers = [
        one.detach().contiguous() if flat else one
        for one, flat in zip(tensors, strided, strict=True)
    ]
    copies = [
        (tensor, buffer)
        for tensor, buffer, flat in zip(tensors, buffers, strided, strict=True)
        if flat and not tensor.is_contiguous()
    ]

    def give_back(work: Work) -> Work:
        if not copies:
            return work

        def deliver(done: Future[list[torch.Tensor]]) -> list[torch.Tensor]:
            done.value()  # raises the operation's error
            for tensor, buffer in copies:
                with torch.no_grad(), torch.inference_mode(tensor.is_inference()):
                    tensor.copy_(buffer)
            return list(tensors)

        given_back: Work = _create_work_from_future(work.get_future().then(deliver))
        return given_back

    return (buffers if copies else list(tensors)), give_back
