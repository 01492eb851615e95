"""What hooks share that do not send all of a gradient, and add the rest to the next one's.

A step's buckets go over the network in the order in which DDP gives them, each in two sums: a small
one, by which ranks agree on what to send of it, and that. The second of a bucket is sent after the
first of the next, so that neither waits for a round trip.
"""

# No `from __future__ import annotations`: DDP compares the hooks' annotations with classes.

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import GradBucket
from torch.distributed import Work

from ina.torch.errors import SettingError
from ina.torch.hook import HookState
from ina.torch.process_group import ProcessGroupIna

Averaged = torch.futures.Future[torch.Tensor]


class Kept:
    """What was not sent yet of each parameter's gradients, in their own units.

    By the parameters' names, and not by bucket: DDP builds buckets anew after the first step.
    """

    def __init__(self, model: nn.Module) -> None:
        """``model``: the one that DDP wraps, or DDP's."""
        inner = model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
        self._names = {id(it): name for name, it in inner.named_parameters()}
        self._by_name: dict[str, torch.Tensor] = {}
        self.scale = 1.0
        """Of the gradients that come."""

    def add_to(self, values: torch.Tensor, parameters: list[torch.Tensor]) -> None:
        """Add what is kept of a bucket's parameters to its gradients, float32, flat."""
        for name, place in self._places(parameters):
            kept = self._by_name.get(name)
            if kept is not None:
                values[place].add_(kept, alpha=self.scale)

    def keep(self, values: torch.Tensor, parameters: list[torch.Tensor]) -> None:
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

    def _places(self, parameters: list[torch.Tensor]) -> list[tuple[str, slice]]:
        places, begin = [], 0
        for parameter in parameters:
            end = begin + parameter.numel()
            places.append((self._names[id(parameter)], slice(begin, end)))
            begin = end
        return places


@dataclass
class Begun:
    """A bucket on its way, whose first sum is."""

    buffer: torch.Tensor
    parameters: list[torch.Tensor]
    values: torch.Tensor
    """Its gradients with what was kept, float32, as the hook sends them."""
    agreed: Work
    """The first sum."""
    future: Averaged = field(default_factory=torch.futures.Future, kw_only=True)
    """Of the buffer, with the average."""


_B = TypeVar("_B", bound=Begun)


class FeedbackState(abc.ABC, Generic[_B]):
    """Of a hook with feedback: the job that it sums in, and what it keeps of each parameter.

    All ranks make it alike. ``state_dict`` has what is kept by the parameters' names, in units of
    the gradients: with it a training that goes on from a checkpoint goes on with the same bits.
    """

    def __init__(self, model: nn.Module, process_group: dist.ProcessGroup | None) -> None:
        """``model``: whose gradients come, the one that DDP wraps or DDP's. ``process_group``: the
        one that it was given (default: the default group); joins a job of its own unless it is
        ina's. Blocks until all ranks are there; raises what :class:`HookState` raises.
        """
        self._hook_state = HookState(process_group)
        self._kept = Kept(model)
        self._step, self._index = 0, 0
        self._waiting: _B | None = None
        self.skipped = 0
        """Buckets with Inf or NaN in them, of which nothing was kept."""

    def set_scale(self, scale: float) -> None:
        """Of the loss, where it is scaled (``GradScaler.get_scale()``), before each ``backward``:
        what is kept of gradients is kept in their own units."""
        self._kept.scale = scale

    def state_dict(self) -> dict[str, Any]:
        """What is kept, by the parameters' names, and how many steps there were."""
        return {"kept": self._kept.state_dict(), "step": self._step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises :class:`SettingError` where it is of another model."""
        try:
            self._kept.load_state_dict(state["kept"])
        except SettingError as error:
            raise SettingError(f"{type(self).__name__}: {error}") from None
        self._step = int(state["step"])

    def close(self) -> None:
        """Leave the job."""
        self._hook_state.close()

    def reduce(self, bucket: GradBucket) -> Averaged:
        """Begin one bucket's sums; what the hook does."""
        if bucket.buffer().is_complex():
            raise SettingError(f"{type(self).__name__}: want real gradients, not complex ones")
        if bucket.index() == 0:  # of a step before that failed
            self._waiting, self._index = None, 0
        begun = self._begin(bucket)
        before, self._waiting = self._waiting, begun
        if before is not None:
            self._send(before)
        self._index += 1
        if bucket.is_last():
            self._waiting = None
            self._send(begun)
            self._step, self._index = self._step + 1, 0
        return begun.future

    @abc.abstractmethod
    def _begin(self, bucket: GradBucket) -> _B:
        """Add what is kept, and start the first sum."""

    @abc.abstractmethod
    def _send(self, bucket: _B) -> None:
        """Wait for the first sum, start the second, and see to the future's end."""

    @property
    def _group(self) -> ProcessGroupIna:
        return self._hook_state.group

    def _end_with(self, bucket: _B, work: Work, write: Callable[[], object]) -> None:
        """Once ``work`` has ended, have ``write`` take its sum to the buffer; end the future."""

        def arrived(done: torch.futures.Future[list[torch.Tensor]]) -> None:
            try:
                done.value()
                write()
                bucket.future.set_result(bucket.buffer)
            except Exception as error:
                bucket.future.set_exception(error)  # type: ignore[arg-type]

        work.get_future().add_done_callback(arrived)

    def _skip(self, bucket: _B) -> None:
        """All ranks hear of it: a loss scaler then skips the step, on each."""
        self.skipped += 1
        bucket.buffer.fill_(math.nan)
        bucket.future.set_result(bucket.buffer)
