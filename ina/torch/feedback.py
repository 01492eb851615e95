"""What hooks share that do not send all of a gradient, and add the rest to the next one's.

A step's buckets go over the network in the order in which DDP gives them, each in two sums. The
second of a bucket is sent after the first of the next, so that neither waits for a round trip.
"""

# No `from __future__ import annotations`: DDP compares the hooks' annotations with classes.

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import GradBucket
from torch.distributed import Work

from ina.torch.buckets import Begun, Buckets, Summand
from ina.torch.errors import SettingError
from ina.torch.hook import HookState

Averaged = torch.futures.Future[torch.Tensor]


def named_parameters(model: nn.Module) -> Iterable[tuple[str, torch.Tensor]]:
    """Those of the model that DDP wraps, or that is none of DDP's: by names without DDP's own."""
    inner = model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
    return inner.named_parameters()


@dataclass
class _OnItsWay:
    """A bucket whose first sum has begun."""

    begun: Begun
    agreed: Work
    """The first sum."""
    future: Averaged = field(default_factory=torch.futures.Future)
    """Of the buffer, with the average."""


class FeedbackState:
    """Of a hook with feedback: the job that it sums in, and what it keeps of each parameter.

    All ranks make it alike. ``state_dict`` has what is kept by the parameters' names, in units of
    the gradients: with it a training that goes on from a checkpoint goes on with the same bits.
    """

    def __init__(
        self,
        process_group: dist.ProcessGroup | None,
        buckets: Callable[[int, int], Buckets[Any]],
    ) -> None:
        """``process_group``: the one that DDP was given (default: the default group); joins a job
        of its own unless it is ina's. ``buckets``: told which of how many ranks this is. Blocks
        until all ranks are there; raises what :class:`HookState` raises, and ``buckets``.
        """
        self._hook_state = HookState(process_group)
        group = self._hook_state.group
        try:
            self._buckets = buckets(group.rank(), group.size())
        except SettingError as error:
            self.close()
            raise SettingError(f"{type(self).__name__}: {error}") from None
        self._waiting: _OnItsWay | None = None

    @property
    def skipped(self) -> int:
        """Buckets with Inf or NaN in them, of which nothing was kept."""
        return self._buckets.skipped

    def set_scale(self, scale: float) -> None:
        """Of the loss, where it is scaled (``GradScaler.get_scale()``), before each ``backward``:
        what is kept of gradients is kept in their own units."""
        self._buckets.kept.scale = scale

    def state_dict(self) -> dict[str, Any]:
        """What is kept, by the parameters' names, and how many steps there were."""
        return self._buckets.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises :class:`SettingError` where it is of another model."""
        try:
            self._buckets.load_state_dict(state)
        except SettingError as error:
            raise SettingError(f"{type(self).__name__}: {error}") from None

    def close(self) -> None:
        """Leave the job."""
        self._hook_state.close()

    def reduce(self, bucket: GradBucket) -> Averaged:
        """Begin one bucket's sums; what the hook does."""
        if bucket.buffer().is_complex():
            raise SettingError(f"{type(self).__name__}: want real gradients, not complex ones")
        if bucket.index() == 0:  # of a step before that failed
            self._waiting = None
            self._buckets.begin_step()
        begun = self._buckets.begin(bucket.buffer(), bucket.parameters())
        on_its_way = _OnItsWay(begun, self._sum(begun.first))
        before, self._waiting = self._waiting, on_its_way
        if before is not None:
            self._send(before)
        if bucket.is_last():
            self._waiting = None
            self._send(on_its_way)
            self._buckets.end_step()
        return on_its_way.future

    def _send(self, one: _OnItsWay) -> None:
        """Wait for the first sum, start the second, and see to the future's end."""
        if not one.begun.goes_twice:
            self._end_with(one, one.agreed)
            return
        one.agreed.wait()
        second = self._buckets.second(one.begun)
        if second is not None:
            self._end_with(one, self._sum(second))
            return
        self._buckets.write(one.begun)
        one.future.set_result(one.begun.buffer)

    def _sum(self, what: Summand) -> Work:
        return self._hook_state.group.allreduce_coded(what.tensor, what.coding, what.op)

    def _end_with(self, one: _OnItsWay, work: Work) -> None:
        """Once ``work`` has ended, its sum goes to the buffer."""

        def arrived(done: torch.futures.Future[list[torch.Tensor]]) -> None:
            try:
                done.value()
                self._buckets.write(one.begun)
                one.future.set_result(one.begun.buffer)
            except Exception as error:
                one.future.set_exception(error)  # type: ignore[arg-type]

        work.get_future().add_done_callback(arrived)
