"""DDP communication hook that sends gradients in 8 or 16 bits, and keeps what rounding took.

After THC (Li et al., NSDI 2024): values are turned by a randomised Hadamard transform, which makes
them alike in size, quantised in steps that all ranks share, and rounded by chance; what was not
sent of a gradient is added to the next one's (error feedback). THC's switch looks levels up in a
table, because 4 bits come up to it; here a value has 8 bits each way, and the levels are integers.

A step's buckets go over the network in the order in which DDP gives them, each in two sums: of how
far its blocks' values reach, by which ranks agree on the steps, and of its integers. The second of
a bucket is sent after the first of the next, so that neither waits for a round trip.
"""

# No `from __future__ import annotations`: DDP compares the hook's annotations with classes.

import logging
import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import GradBucket
from torch.distributed import Work

from ina.protocol.coding import MOST_WORKERS, WHOLE, Coding, exact_below, too_narrow
from ina.torch.errors import SettingError
from ina.torch.hook import HookState

_log = logging.getLogger("ina.torch")

_SIDE = 32
BLOCK = _SIDE * _SIDE
"""Values that are turned together, and share a step."""
_REACH = {8: 3.0, 16: 5.0}
"""Standard deviations of a normal distribution: what is farther out is cut, and kept for later."""


@dataclass
class _Bucket:
    """One on its way."""

    buffer: torch.Tensor
    parameters: list[torch.Tensor]
    values: torch.Tensor
    """With what was kept, turned; blocks of BLOCK."""
    reach: torch.Tensor
    """Of each block, how far its integers go; once agreed, the ranks' mean."""
    agreed: Work
    signs: torch.Tensor
    chance: torch.Generator
    future: torch.futures.Future[torch.Tensor]


class LowbitState:
    """Of :func:`lowbit_hook`: the job that it sums in, and what it keeps of each parameter.

    All ranks make it alike. ``state_dict`` has what is kept by the parameters' names, in units of
    the gradients: with it a training that goes on from a checkpoint goes on with the same bits.
    """

    def __init__(
        self,
        model: nn.Module,
        process_group: dist.ProcessGroup | None = None,
        *,
        bits: int = 8,
        hadamard: bool = True,
        error_feedback: bool = True,
        seed: int = 0,
    ) -> None:
        """``model``: whose gradients come, the one that DDP wraps or DDP's. ``process_group``: the
        one that it was given (default: the default group); joins a job of its own unless it is
        ina's. Blocks until all ranks are there.

        Raises :class:`SettingError`: ``bits`` is neither 8 nor 16, or there are more ranks than a
        sum of so few has room for; and what :class:`HookState` raises.
        """
        if bits not in _REACH:
            raise SettingError(f"bits={bits}: want 8 or 16")
        self._hook_state = HookState(process_group)
        workers = self._hook_state.group.size()
        if workers > MOST_WORKERS[bits]:
            self._hook_state.close()
            raise SettingError(f"LowbitState: {too_narrow(bits, workers)}")
        self._coding, self._limit = Coding(bits), exact_below(bits, workers) - 1
        self._bits, self._hadamard, self._keeps, self._seed = bits, hadamard, error_feedback, seed
        inner = model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
        self._names = {id(it): name for name, it in inner.named_parameters()}
        self._kept: dict[str, torch.Tensor] = {}
        self._scale = 1.0
        self._step, self._index = 0, 0
        self._waiting: _Bucket | None = None
        self.skipped = 0
        """Buckets with Inf or NaN in them, of which nothing was kept."""

    def set_scale(self, scale: float) -> None:
        """Of the loss, where it is scaled (``GradScaler.get_scale()``), before each ``backward``:
        what is kept of gradients is kept in their own units."""
        self._scale = scale

    def state_dict(self) -> dict[str, Any]:
        """What is kept, by the parameters' names, and how many steps there were."""
        kept = {name: kept.clone() for name, kept in self._kept.items()}
        return {"kept": kept, "step": self._step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises :class:`SettingError` where it is of another model."""
        unknown = set(state["kept"]) - set(self._names.values())
        if unknown:
            raise SettingError(f"LowbitState: the model has no parameter {sorted(unknown)[0]!r}")
        self._kept = {name: kept.clone() for name, kept in state["kept"].items()}
        self._step = int(state["step"])

    def close(self) -> None:
        """Leave the job."""
        self._hook_state.close()

    # -- a bucket ------------------------------------------------------------------------------

    def reduce(self, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """Begin one bucket's sums; see :func:`lowbit_hook`."""
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

    def _begin(self, bucket: GradBucket) -> _Bucket:
        buffer, parameters = bucket.buffer(), bucket.parameters()
        blocks = -(-buffer.numel() // BLOCK)
        values = torch.zeros(blocks * BLOCK)
        values[: buffer.numel()] = buffer
        self._add_kept(values, parameters)
        shared, own = self._chances()
        signs = torch.randint(0, 2, (BLOCK,), generator=shared).mul_(2).sub_(1).float()
        turned = values.view(blocks, BLOCK)
        if self._hadamard:
            turned = _turn(turned * signs)
        # Of what was turned, that is a normal distribution's; else the range is of the largest.
        reach = _REACH[self._bits] * turned.square().mean(dim=1).sqrt()
        reach = reach if self._hadamard else turned.abs().amax(dim=1)
        agreed = self._group.allreduce_coded(reach, WHOLE, dist.ReduceOp.AVG)
        future: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        return _Bucket(buffer, parameters, turned, reach, agreed, signs, own, future)

    def _send(self, bucket: _Bucket) -> None:
        bucket.agreed.wait()
        if not bool(torch.isfinite(bucket.reach).all()):
            self._skip(bucket)
            return
        steps = (bucket.reach / self._limit).unsqueeze(1)
        steps[steps == 0] = 1.0
        scaled = bucket.values / steps
        integers = (scaled + torch.rand(scaled.shape, generator=bucket.chance)).floor_()
        integers.clamp_(-self._limit, self._limit)
        if self._keeps:
            self._keep(bucket, bucket.values - integers * steps)
        work = self._group.allreduce_coded(integers, self._coding)

        def arrived(done: torch.futures.Future[list[torch.Tensor]]) -> None:
            try:
                done.value()
                summed = integers.mul_(steps / self._group.size())
                self._write(bucket, summed)
                bucket.future.set_result(bucket.buffer)
            except Exception as error:
                bucket.future.set_exception(error)  # type: ignore[arg-type]

        work.get_future().add_done_callback(arrived)

    def _write(self, bucket: _Bucket, turned: torch.Tensor) -> None:
        values = self._turned_back(turned, bucket.signs).view(-1)
        bucket.buffer.copy_(values[: bucket.buffer.numel()])

    def _turned_back(self, turned: torch.Tensor, signs: torch.Tensor) -> torch.Tensor:
        return _turn(turned) * signs if self._hadamard else turned

    def _skip(self, bucket: _Bucket) -> None:
        """All ranks hear of it: a loss scaler then skips the step, on each."""
        self.skipped += 1
        bucket.buffer.fill_(math.nan)
        bucket.future.set_result(bucket.buffer)

    @property
    def _group(self) -> Any:
        return self._hook_state.group

    def _chances(self) -> tuple[torch.Generator, torch.Generator]:
        """Those that ranks share, and this rank's; of the step and the bucket, never of time."""
        shared = (self._seed * 1_000_003 + self._step) * 8191 + self._index
        own = shared * 1031 + self._group.rank() + 1
        return (
            torch.Generator().manual_seed(shared % 2**63),
            torch.Generator().manual_seed(own % 2**63),
        )

    # -- what is kept --------------------------------------------------------------------------

    def _places(self, parameters: list[torch.Tensor]) -> list[tuple[str, slice]]:
        """By parameter, not by bucket: DDP builds those anew after the first step."""
        places, begin = [], 0
        for parameter in parameters:
            end = begin + parameter.numel()
            places.append((self._names[id(parameter)], slice(begin, end)))
            begin = end
        return places

    def _add_kept(self, values: torch.Tensor, parameters: list[torch.Tensor]) -> None:
        for name, place in self._places(parameters):
            kept = self._kept.get(name)
            if kept is not None:
                values[place].add_(kept, alpha=self._scale)

    def _keep(self, bucket: _Bucket, turned: torch.Tensor) -> None:
        values = self._turned_back(turned, bucket.signs).view(-1)
        for name, place in self._places(bucket.parameters):
            self._kept[name] = values[place] / self._scale


def lowbit_hook(state: LowbitState, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Average one bucket of gradients in few bits; for ``register_comm_hook`` with a LowbitState.

    Where a gradient holds Inf or NaN, on any rank, all ranks get NaN in the bucket and nothing of
    it is kept. An error of the network becomes the future's, so ``backward()`` raises it.
    """
    return state.reduce(bucket)


def _turn(blocks: torch.Tensor) -> torch.Tensor:
    """The orthonormal Hadamard transform of each row, its own inverse.

    Of 1024 values: by that of 32 from both sides, which is two products of matrices.
    """
    side = _hadamard(_SIDE) / math.sqrt(_SIDE)
    return (side @ blocks.view(-1, _SIDE, _SIDE) @ side).view(blocks.shape)


def _hadamard(size: int) -> torch.Tensor:
    matrix = torch.ones(1, 1)
    while matrix.shape[0] < size:
        top = torch.cat([matrix, matrix], dim=1)
        matrix = torch.cat([top, torch.cat([matrix, -matrix], dim=1)])
    return matrix
