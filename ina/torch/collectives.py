"""What the collectives of a group have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import ReduceOp, Work

from ina.torch.devices import device_type_of
from ina.torch.gloo import GlooForwarding
from ina.torch.paths import why_not_moved
from ina.torch.work import Piece

AnyOp = ReduceOp | ReduceOp.RedOpType
Call = tuple[str, tuple[Any, ...], dict[str, Any]]
"""Of the inner group, where the network cannot do it: method, arguments, named arguments."""


class Collectives(GlooForwarding):
    """A process group of which the network does some collectives."""

    _has_shapes: bool
    """See :attr:`ina.host.Ticket.has_shapes`; of the group's first session, so that all ranks go
    the same way whenever one gets another place."""

    def _sum(
        self, name: str, pieces: Sequence[Piece], op: AnyOp, timeout: timedelta | None
    ) -> Work:
        """Have the network sum the pieces, and deliver the results."""
        raise NotImplementedError

    def _move(self, name: str, pieces: Sequence[Piece], timeout: timedelta | None) -> Work:
        """Have the network move the pieces' bytes, and deliver them."""
        raise NotImplementedError

    def _is_on_cpu(self, tensors: Iterable[Any]) -> bool:
        """Whether the network does it without a copy; raises UnsupportedDeviceError."""
        kind = device_type_of(tensors)
        return self._sums_on(tensors) and kind == "cpu"

    def _why_not_moved(self, tensors: Iterable[torch.Tensor]) -> str | None:
        """Why the network does not move these, or None if it does."""
        if not self._has_shapes:
            return "the job's switches only sum"
        tensors = list(tensors)
        if not self._is_on_cpu(tensors):
            return "the network moves tensors in CPU memory"
        return next(filter(None, map(why_not_moved, tensors)), None)


def options_and_timeout(
    options: type, args: Sequence[Any], kwargs: dict[str, Any], name: str
) -> tuple[Any, timedelta | None]:
    """From torch's spellings: (options), (the argument ``name``, timeout), or nothing.

    The first is the options, the argument, or None.
    """
    first = args[0] if args else kwargs.get("opts", kwargs.get(name))
    if isinstance(first, options):
        return first, first.timeout  # type: ignore[attr-defined]  # each of torch's has one
    return first, args[1] if len(args) > 1 else kwargs.get("timeout")
