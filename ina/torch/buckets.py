"""What hooks with feedback make of buckets of gradients, but for the network and for DDP.

A step's buckets are taken in DDP's order. Each goes over the network in two sums: of something
small, by which the ranks agree on what to send of it, and of that. What was not sent is kept, and
added to the next step's gradients. :mod:`ina.torch.feedback` has DDP's buckets summed so, the
virtual network (``ina sim``) those of its scenarios.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import torch
from torch.distributed import ReduceOp

from ina.protocol.coding import WHOLE, Coding
from ina.torch.errors import SettingError


@dataclass(frozen=True)
class Summand:
    """What the ranks sum, or average, in place."""

    tensor: torch.Tensor
    """Float32, in CPU memory, of the same shape on all ranks."""
    op: ReduceOp.RedOpType
    coding: Coding = WHOLE


@dataclass
class Begun:
    """A bucket on its way."""

    buffer: torch.Tensor
    """Its gradients, and in the end their average."""
    parameters: Sequence[torch.Tensor]
    values: torch.Tensor
    """Its gradients with what was kept, float32, as the hook sends them."""
    first: Summand
    goes_twice: bool = field(default=True, kw_only=True)
    """Else the first sum is the only one."""
    is_finite: bool = field(default=True, kw_only=True)
    """Once the first sum of two has come: nobody had Inf or NaN."""


_B = TypeVar("_B", bound=Begun)


class Kept:
    """What was not sent yet of each parameter's gradients, in their own units.

    By the parameters' names, and not by bucket: DDP builds buckets anew after the first step.
    """

    def __init__(self, parameters: Iterable[tuple[str, torch.Tensor]]) -> None:
        """``parameters``: with their names."""
        self._names = {id(it): name for name, it in parameters}
        self._by_name: dict[str, torch.Tensor] = {}
        self.scale = 1.0
        """Of the gradients that come."""

    def add_to(self, values: torch.Tensor, parameters: Sequence[torch.Tensor]) -> None:
        """Add what is kept of a bucket's parameters to its gradients, float32, flat."""
        for name, place in self._places(parameters):
            kept = self._by_name.get(name)
            if kept is not None:
                values[place].add_(kept, alpha=self.scale)

    def keep(self, values: torch.Tensor, parameters: Sequence[torch.Tensor]) -> None:
        """Keep this of them, and no longer what was kept; nobody else may write to it from now."""
        values.div_(self.scale)
        for name, place in self._places(parameters):
            self._by_name[name] = values[place]

    def state_dict(self) -> dict[str, torch.Tensor]:
        """A copy, by the parameters' names."""
        return {name: kept.clone() for name, kept in self._by_name.items()}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Raises :class:`SettingError` where it is of another model."""
        unknown = set(state) - set(self._names.values())
        if unknown:
            raise SettingError(f"the model has no parameter {sorted(unknown)[0]!r}")
        self._by_name = {name: kept.clone() for name, kept in state.items()}

    def _places(self, parameters: Sequence[torch.Tensor]) -> list[tuple[str, slice]]:
        places, begin = [], 0
        for parameter in parameters:
            end = begin + parameter.numel()
            places.append((self._names[id(parameter)], slice(begin, end)))
            begin = end
        return places


class Buckets(abc.ABC, Generic[_B]):
    """Of one rank: its steps' buckets, one after the other, and what it keeps of them."""

    def __init__(self, parameters: Iterable[tuple[str, torch.Tensor]]) -> None:
        """``parameters``: of the model, with their names."""
        self.kept = Kept(parameters)
        self.skipped = 0
        """Buckets with Inf or NaN in them, of which nothing was kept."""
        self._step, self._index = 0, 0

    def state_dict(self) -> dict[str, Any]:
        """What is kept, by the parameters' names, and how many steps there were."""
        return {"kept": self.kept.state_dict(), "step": self._step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises :class:`SettingError` where it is of another model."""
        self.kept.load_state_dict(state["kept"])
        self._step = int(state["step"])

    def begin_step(self) -> None:
        """Whatever became of the one before."""
        self._index = 0

    def end_step(self) -> None:
        """All of its buckets have begun their last sums."""
        self._step, self._index = self._step + 1, 0

    def begin(self, buffer: torch.Tensor, parameters: Sequence[torch.Tensor]) -> _B:
        """Add what is kept to a bucket's gradients, ``buffer``: float, flat, of these parameters.

        Returns what to sum first.
        """
        begun = self._begin(buffer, parameters)
        self._index += 1
        return begun

    def second(self, begun: _B) -> Summand | None:
        """What to sum of a bucket that goes twice, once its first sum has come.

        None: nothing, since a rank has Inf or NaN in it.
        """
        if bool(torch.isfinite(begun.first.tensor).all()):
            return self._second(begun)
        self.skipped += 1
        begun.is_finite = False
        return None

    def write(self, begun: _B) -> None:
        """Its last sum has come: write the average to its buffer, or NaN to all of it.

        All ranks see NaN, so that a loss scaler skips the step on each.
        """
        if begun.is_finite:
            self._write(begun)
        else:
            begun.buffer.fill_(math.nan)

    @abc.abstractmethod
    def _begin(self, buffer: torch.Tensor, parameters: Sequence[torch.Tensor]) -> _B: ...

    @abc.abstractmethod
    def _second(self, begun: _B) -> Summand: ...

    @abc.abstractmethod
    def _write(self, begun: _B) -> None: ...
