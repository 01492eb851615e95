"""all_gather: each rank sends its tensor once, and gets those of all, bit by bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch._C._distributed_c10d import AllgatherOptions
from torch.distributed import Work

from ina.torch import compat, moves
from ina.torch.collectives import Call, Collectives, options_and_timeout
from ina.torch.dense import waited
from ina.torch.work import Piece


class AllGather(Collectives):
    """The part of a process group that gathers; torch has a name for each form of arguments."""

    def allgather(  # type: ignore[override]  # one method for two overloads
        self,
        outputs: Sequence[Any],
        inputs: torch.Tensor | Sequence[torch.Tensor],
        *args: Any,
        **kwargs: Any,
    ) -> Work:
        """``outputs``: a tensor for each rank, or for a list of inputs a list of such lists."""
        call = ("allgather", (outputs, inputs, *args), kwargs)
        if isinstance(inputs, torch.Tensor):
            return self._gather_lists([outputs], [inputs], call)
        return self._gather_lists(outputs, inputs, call)

    def allgather_coalesced(  # type: ignore[override]
        self,
        outputs: Sequence[Sequence[torch.Tensor]],
        inputs: Sequence[torch.Tensor],
        *args: Any,
        **kwargs: Any,
    ) -> Work:
        """Several tensors, completed together; ``outputs``: for each rank, a tensor for each."""
        call = ("allgather_coalesced", (outputs, inputs, *args), kwargs)
        if len({len(inputs), *map(len, outputs)}) > 1:
            return self._forward(*call)  # which says what does not fit
        return self._gather_lists(list(zip(*outputs, strict=True)), inputs, call)

    def all_gather_single(  # type: ignore[override]
        self, output: torch.Tensor, own: torch.Tensor, *args: Any, **kwargs: Any
    ) -> Work:
        """``output``: one tensor, which gets rank 0's elements, rank 1's and so on."""
        call = (compat.ALL_GATHER_SINGLE, (output, own, *args), kwargs)
        return self._gather([output], [own], call)

    _allgather_base = all_gather_single  # type: ignore[assignment]  # its older name

    def all_gather_single_coalesced(  # type: ignore[override]
        self,
        outputs: Sequence[torch.Tensor],
        inputs: Sequence[torch.Tensor],
        *args: Any,
        **kwargs: Any,
    ) -> Work:
        """Several of them, completed together; functional all_gather comes here."""
        call = (compat.ALL_GATHER_COALESCED, (outputs, inputs, *args), kwargs)
        return self._gather(outputs, inputs, call)

    allgather_into_tensor_coalesced = all_gather_single_coalesced  # type: ignore[assignment]

    def _gather(
        self, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor], call: Call
    ) -> Work:
        """``call`` is what to ask the inner group where the network cannot do it."""
        outputs, inputs = list(map(waited, outputs)), list(map(waited, inputs))
        ranks = self.size()
        fits = len(outputs) == len(inputs) and all(
            output.numel() == ranks * own.numel() and _alike(output, own)
            for output, own in zip(outputs, inputs, strict=True)
        )

        def pieces() -> list[Piece]:
            pairs = zip(outputs, inputs, strict=True)
            return [moves.gathered(output, own, self.rank()) for output, own in pairs]

        return self._gather_pieces(inputs, pieces, call, fits=fits)

    def _gather_lists(
        self,
        outputs: Sequence[Sequence[torch.Tensor]],
        inputs: Sequence[torch.Tensor],
        call: Call,
    ) -> Work:
        """``outputs``: for each input, a tensor for each rank."""
        lists, inputs = [list(map(waited, one)) for one in outputs], list(map(waited, inputs))
        ranks = self.size()
        fits = len(lists) == len(inputs) and all(
            len(one) == ranks
            and all(output.numel() == own.numel() and _alike(output, own) for output in one)
            for one, own in zip(lists, inputs, strict=True)
        )

        def pieces() -> list[Piece]:
            pairs = zip(lists, inputs, strict=True)
            return [moves.gathered_list(one, own, self.rank()) for one, own in pairs]

        return self._gather_pieces(inputs, pieces, call, fits=fits)

    def _gather_pieces(
        self,
        inputs: Sequence[torch.Tensor],
        pieces: Callable[[], list[Piece]],
        call: Call,
        *,
        fits: bool,
    ) -> Work:
        reason = self._why_not_moved(inputs)
        if reason is None and not fits:
            reason = "its tensors do not fit together"  # Gloo says how
        if reason is not None:
            return self._forward(*call, reason=reason)
        return self._move("all_gather", pieces(), _timeout(call))


def _timeout(call: Call) -> timedelta | None:
    _, args, kwargs = call
    return options_and_timeout(AllgatherOptions, args[2:], kwargs, "opts")[1]


def _alike(output: torch.Tensor, own: torch.Tensor) -> bool:
    return output.dtype == own.dtype and output.device == own.device
