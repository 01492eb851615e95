"""Memory layouts of tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

Lay = Callable[[torch.Tensor], torch.Tensor]

SHAPE = (2, 2, 3, 2)


@dataclass(frozen=True)
class Layout:
    """How a tensor lies in memory."""

    name: str
    lay: Lay
    """The same values in this layout, in memory of their own."""
    shape: tuple[int, ...] = SHAPE
    overlaps: bool = False
    """Several elements share memory: it can be sent, not received."""
    differentiable: bool = False

    def takes(self, dtype: torch.dtype) -> bool:
        return not self.differentiable or dtype.is_floating_point or dtype.is_complex


def contiguous(values: torch.Tensor) -> torch.Tensor:
    return values.detach().clone(memory_format=torch.contiguous_format)


def _gaps(values: torch.Tensor) -> torch.Tensor:
    return _within_gaps(values)[..., ::2]


def _within_gaps(values: torch.Tensor) -> torch.Tensor:
    memory = values.new_zeros((*values.shape[:-1], 2 * values.shape[-1]))
    memory[..., ::2].copy_(values)
    return memory


def _transposed(values: torch.Tensor) -> torch.Tensor:
    order = tuple(reversed(range(values.ndim)))
    return contiguous(values.permute(order)).permute(order)


def _channels_last(values: torch.Tensor) -> torch.Tensor:
    if values.ndim != 4:
        return contiguous(values)
    return values.clone(memory_format=torch.channels_last)


def _of_inference_mode(values: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return _gaps(values)


def _expanded(values: torch.Tensor) -> torch.Tensor:
    return contiguous(values[:1]).expand(values.shape)


def _windows(values: torch.Tensor) -> torch.Tensor:
    """Rows that begin one element apart."""
    rows, row = len(values), values[0].numel()
    memory = contiguous(values.reshape(-1)[: row + rows])
    return memory.as_strided(values.shape, (1, *values[0].contiguous().stride()))


LAYOUTS = (
    Layout("contiguous", contiguous),
    Layout("gaps", _gaps),
    Layout("transposed", _transposed),
    Layout("channels_last", _channels_last),
    Layout("zero elements", contiguous, (0, 3)),
    Layout("zero elements, gaps", _gaps, (2, 0, 2)),
    Layout("zero dimensions", contiguous, ()),
    Layout("expanded", _expanded, overlaps=True),
    Layout("windows", _windows, overlaps=True),
    Layout("leaf", lambda one: contiguous(one).requires_grad_(), differentiable=True),
    Layout(
        "leaf, channels_last",
        lambda one: _channels_last(one).requires_grad_(),
        differentiable=True,
    ),
    Layout(
        "view of a leaf",
        lambda one: _within_gaps(one).requires_grad_()[..., ::2],
        differentiable=True,
    ),
    Layout("gaps, inference mode", _of_inference_mode),
)
