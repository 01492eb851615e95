"""What updates the rows: an optimiser as others of torch, whose work the rows' owners do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch

from ina.embed.errors import TableError
from ina.embed.rules import RULES
from ina.extension.embed import Optimizer as Native

Name = Literal["sgd", "adagrad", "rowwise_adagrad"]


def native_optimizer(name: str, eps: float, initial_accumulator_value: float) -> Native:
    """Of the cores. Raises TableError: no such name, or a number out of range."""
    if name not in RULES:
        raise TableError(f"optimizer {name!r}: want one of {', '.join(RULES)}")
    if eps < 0.0 or initial_accumulator_value < 0.0:
        raise TableError("eps and initial_accumulator_value: want 0 or more")
    return Native(rule=RULES[name], epsilon=eps, first_accumulator=initial_accumulator_value)


class EmbeddingOptimizer(torch.optim.Optimizer):
    """Made by :meth:`ina.torch.embedding.EmbeddingBags.optimizer`.

    :meth:`step` ends a step on this rank: rows are updated once all ranks have ended it. Learning
    rate schedulers of torch work on it; all ranks must have the same rate in a step.
    """

    def __init__(self, end_step: Callable[[float], None], lr: float) -> None:
        """Raises TableError: `lr` is negative."""
        if lr < 0.0:
            raise TableError(f"lr = {lr}: want 0 or more")
        self._end_step = end_step
        super().__init__([torch.nn.Parameter(torch.empty(0))], {"lr": lr})

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """End the step; gradients that have come so far are its. Returns `closure`'s value."""
        loss = closure() if closure is not None else None
        self._end_step(float(self.param_groups[0]["lr"]))
        return loss
