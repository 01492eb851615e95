"""Takes tensors of another device to CPU memory for the network, and the sums back.

The device quantises, so that the CPU only moves int32: it copies to pinned memory, the session sums
there, and the completion thread copies back and dequantises on a stream of its own. The caller's
thread waits for the quantising (the values must be in CPU memory before they can be sent) and for
the workers' agreement on the blocks' exponents; the network's part runs in the background.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import torch

from ina.protocol.collective import Reduction
from ina.torch.cuda import quantiser
from ina.torch.work import Piece


def stage(
    pieces: Sequence[Piece],
    *,
    op: Reduction,
    workers: int,
    block_elems: int,
    agree: Callable[[torch.Tensor], object],
) -> list[Piece]:
    """Pieces whose buffers are int32 in CPU memory; their SUM is what ``pieces`` asks for.

    All buffers of ``pieces`` are on one device; float32, float16, bfloat16 or int32. ``agree`` is
    given a uint8 tensor in CPU memory, and replaces it by the maximum over the workers.
    ``block_elems`` must be the same on all ranks.
    """
    floats = [piece for piece in pieces if piece.buffer.is_floating_point()]
    codes = iter(_agreed_codes(floats, block_elems, agree))
    staged = []
    for piece in pieces:
        values = piece.buffer.detach().view(-1)
        if piece.buffer.is_floating_point():
            agreed = next(codes)
            host = _to_host(quantiser.quantise(values, agreed, block_elems, workers))
        else:
            agreed = None
            host = _to_host(values)
        deliver = _Delivery(piece, host, agreed, block_elems, workers, op)
        staged.append(Piece(piece.tensor, host, deliver))
    if pieces:
        _synchronize(pieces[0].buffer.device)
    return staged


def stage_as_they_are(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces with the same values in CPU memory, where they are packed; all are on one device."""
    staged = []
    for piece in pieces:
        host = _to_host(piece.buffer.detach().view(-1))
        staged.append(Piece(piece.tensor, host, _Return(piece, host)))
    if pieces:
        _synchronize(pieces[0].buffer.device)
    return staged


class _Return:
    """Takes a result back to the device as it is; called by the completion thread."""

    def __init__(self, piece: Piece, host: torch.Tensor) -> None:
        self._piece, self._host = piece, host

    def __call__(self) -> None:
        target = self._piece.buffer
        with _own_stream(target.device):
            target.copy_(self._host.view(target.shape), non_blocking=True)
            if self._piece.deliver is not None:
                self._piece.deliver()


def _agreed_codes(
    pieces: Sequence[Piece], block_elems: int, agree: Callable[[torch.Tensor], object]
) -> list[torch.Tensor]:
    """Codes of each piece's blocks, on its device; one agreement for all pieces."""
    if not pieces:
        return []
    own = [quantiser.block_codes(piece.buffer.detach().view(-1), block_elems) for piece in pieces]
    host = _to_host(torch.cat(own))
    _synchronize(own[0].device)
    agree(host)
    agreed = host.to(own[0].device, non_blocking=True)
    return list(torch.split(agreed, [one.numel() for one in own]))


class _Delivery:
    """Takes one summed buffer back to the device; called by the completion thread."""

    def __init__(
        self,
        piece: Piece,
        host: torch.Tensor,
        codes: torch.Tensor | None,
        block_elems: int,
        workers: int,
        op: Reduction,
    ) -> None:
        self._piece, self._host, self._codes = piece, host, codes
        self._block_elems, self._workers, self._op = block_elems, workers, op

    def __call__(self) -> None:
        target = self._piece.buffer
        with _own_stream(target.device):
            sums = self._host.to(target.device, non_blocking=True)
            if self._codes is not None:
                sums = quantiser.dequantise(
                    sums,
                    self._codes,
                    self._block_elems,
                    self._workers,
                    op=self._op,
                    dtype=target.dtype,
                )
            elif self._op is Reduction.AVERAGE:
                sums = torch.div(sums, self._workers, rounding_mode="trunc")
            target.copy_(sums.view(target.shape))
            if self._piece.deliver is not None:
                self._piece.deliver()


def _to_host(tensor: torch.Tensor) -> torch.Tensor:
    """A copy in CPU memory, pinned where that helps; complete after :func:`_synchronize`."""
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.device.type == "cuda")
    return host.copy_(tensor, non_blocking=True)


def _synchronize(device: torch.device) -> None:
    """Wait for what this thread's current stream was given so far."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()


@contextlib.contextmanager
def _own_stream(device: torch.device) -> Iterator[None]:
    """Run on a stream beside the caller's; all is done when the block ends.

    So whoever waits for the work need not wait for a stream, and no memory is reused too early.
    """
    if device.type != "cuda":
        yield
        return
    with torch.cuda.stream(torch.cuda.Stream(device)):  # type: ignore[no-untyped-call]
        yield
        torch.cuda.current_stream(device).synchronize()
