"""DDP communication hook that sends gradients in 8 or 16 bits, and keeps what rounding took.

After THC (Li et al., NSDI 2024): values are turned by a randomised Hadamard transform, which makes
them alike in size, quantised in steps that all ranks share, and rounded by chance; what was not
sent of a gradient is added to the next one's (error feedback). THC's switch looks levels up in a
table, because 4 bits come up to it; here a value has 8 bits each way, and the levels are integers.

A bucket goes in two sums: of how far its blocks' values reach, by which ranks agree on the steps,
and of its integers.
"""

# No `from __future__ import annotations`: DDP compares the hook's annotations with classes.

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import GradBucket

from ina.protocol.coding import MOST_WORKERS, Coding, exact_below, too_narrow
from ina.torch.buckets import Begun, Buckets, Summand
from ina.torch.errors import SettingError
from ina.torch.feedback import FeedbackState, named_parameters

_SIDE = 32
BLOCK = _SIDE * _SIDE
"""Values that are turned together, and share a step."""
_REACH = {8: 3.0, 16: 5.0}
"""Standard deviations of a normal distribution: what is farther out is cut, and kept for later."""


@dataclass(frozen=True)
class Lowbit:
    """How :func:`lowbit_hook` sends values; as of :class:`LowbitState`."""

    bits: int = 8
    hadamard: bool = True
    error_feedback: bool = True
    seed: int = 0


@dataclass
class _Bucket(Begun):
    """Its values are turned, in blocks of BLOCK; its first sum is the mean of how far the ranks'
    integers of each block go."""

    signs: torch.Tensor
    chance: torch.Generator
    integers: torch.Tensor | None = None
    """Once they are on their way."""
    steps: torch.Tensor | None = None
    """What 1 of them stands for."""


class LowbitBuckets(Buckets[_Bucket]):
    """One rank's part in :func:`lowbit_hook`."""

    def __init__(
        self, parameters: Iterable[tuple[str, torch.Tensor]], how: Lowbit, rank: int, workers: int
    ) -> None:
        """``parameters``: of the model, with their names.

        Raises :class:`SettingError`: there are more workers than a sum of so few bits has room for.
        """
        super().__init__(parameters)
        if workers > MOST_WORKERS[how.bits]:
            raise SettingError(too_narrow(how.bits, workers))
        self._coding, self._limit = Coding(how.bits), exact_below(how.bits, workers) - 1
        self._how, self._rank, self._workers = how, rank, workers

    def _begin(self, buffer: torch.Tensor, parameters: Sequence[torch.Tensor]) -> _Bucket:
        blocks = -(-buffer.numel() // BLOCK)
        values = torch.zeros(blocks * BLOCK)
        values[: buffer.numel()] = buffer
        self.kept.add_to(values, parameters)
        shared, own = self._chances()
        signs = torch.randint(0, 2, (BLOCK,), generator=shared).mul_(2).sub_(1).float()
        turned = values.view(blocks, BLOCK)
        if self._how.hadamard:
            turned = turn(turned * signs)
        # Of what was turned, that is a normal distribution's; else the range is of the largest.
        reach = _REACH[self._how.bits] * turned.square().mean(dim=1).sqrt()
        reach = reach if self._how.hadamard else turned.abs().amax(dim=1)
        first = Summand(reach, dist.ReduceOp.AVG)
        return _Bucket(buffer, parameters, turned, first, signs, own)

    def _second(self, begun: _Bucket) -> Summand:
        begun.steps = (begun.first.tensor / self._limit).unsqueeze(1)
        begun.steps[begun.steps == 0] = 1.0
        scaled = begun.values / begun.steps
        integers = (scaled + torch.rand(scaled.shape, generator=begun.chance)).floor_()
        begun.integers = integers.clamp_(-self._limit, self._limit)
        if self._how.error_feedback:
            left = self._turned_back(begun.values - integers * begun.steps, begun.signs)
            self.kept.keep(left.view(-1), begun.parameters)
        return Summand(integers, dist.ReduceOp.SUM, self._coding)

    def _write(self, begun: _Bucket) -> None:
        assert begun.integers is not None
        assert begun.steps is not None
        summed = begun.integers.mul_(begun.steps / self._workers)
        values = self._turned_back(summed, begun.signs).view(-1)
        begun.buffer.copy_(values[: begun.buffer.numel()])

    def _turned_back(self, turned: torch.Tensor, signs: torch.Tensor) -> torch.Tensor:
        return turn(turned) * signs if self._how.hadamard else turned

    def _chances(self) -> tuple[torch.Generator, torch.Generator]:
        """Those that ranks share, and this rank's; of the step and the bucket, never of time."""
        shared = (self._how.seed * 1_000_003 + self._step) * 8191 + self._index
        own = shared * 1031 + self._rank + 1
        return (
            torch.Generator().manual_seed(shared % 2**63),
            torch.Generator().manual_seed(own % 2**63),
        )


class LowbitState(FeedbackState):
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
        how, parameters = Lowbit(bits, hadamard, error_feedback, seed), named_parameters(model)
        super().__init__(
            process_group, lambda rank, workers: LowbitBuckets(parameters, how, rank, workers)
        )


def lowbit_hook(state: LowbitState, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Average one bucket of gradients in few bits; for ``register_comm_hook`` with a LowbitState.

    Where a gradient holds Inf or NaN, on any rank, all ranks get NaN in the bucket and nothing of
    it is kept. An error of the network becomes the future's, so ``backward()`` raises it.
    """
    return state.reduce(bucket)


def turn(blocks: torch.Tensor) -> torch.Tensor:
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
