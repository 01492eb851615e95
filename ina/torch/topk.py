"""DDP communication hook that sends the blocks of gradients that are largest, and keeps the others.

What is not sent of a gradient is added to the next one's (error feedback), so that every value gets
its turn. Ranks choose the blocks together, by the sum of all ranks' norms: were each to choose its
own, the network would carry as many times as many as there are ranks. Blocks, and not single
values: those of 8 ranks that chose 1 % of theirs each would be in 92 % of all blocks of 32.
"""

# No `from __future__ import annotations`: DDP compares the hook's annotations with classes.

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import GradBucket

from ina.protocol.coding import CODINGS, MOST_WORKERS, too_narrow
from ina.torch.buckets import Begun, Buckets, Summand
from ina.torch.env import check_wire
from ina.torch.errors import SettingError
from ina.torch.feedback import FeedbackState, named_parameters

BLOCK = 360
"""Values that are sent together: a packet's of a build for an MTU of 1500."""


@dataclass(frozen=True)
class Topk:
    """What :func:`topk_hook` sends; as of :class:`TopkState`."""

    ratio: float = 0.01
    block_elems: int = BLOCK
    warmup_steps: int = 10
    wire: str = "32"


@dataclass
class _Bucket(Begun):
    """Its values are in blocks, the last of which zeros fill; its first sum is that of the blocks'
    norms. In a step of the warm-up it is the average of all values, and the only one."""

    chosen: torch.Tensor | None = None
    """Indices of the blocks that are on their way."""
    sent: torch.Tensor | None = None
    """Them."""


class TopkBuckets(Buckets[_Bucket]):
    """One rank's part in :func:`topk_hook`."""

    def __init__(
        self, parameters: Iterable[tuple[str, torch.Tensor]], what: Topk, workers: int
    ) -> None:
        """``parameters``: of the model, with their names.

        Raises :class:`SettingError`: there are more workers than a sum by that wire has room for.
        """
        super().__init__(parameters)
        self._what, self._coding = what, CODINGS[what.wire]
        if workers > MOST_WORKERS[self._coding.bits]:
            raise SettingError(too_narrow(self._coding.bits, workers))

    def _begin(self, buffer: torch.Tensor, parameters: Sequence[torch.Tensor]) -> _Bucket:
        if self._step < self._what.warmup_steps:
            values = buffer.to("cpu", torch.float32)
            first = Summand(values, dist.ReduceOp.AVG)
            return _Bucket(buffer, parameters, values, first, goes_twice=False)
        block_elems = self._what.block_elems
        blocks = -(-buffer.numel() // block_elems)
        values = torch.empty(blocks * block_elems)
        values[: buffer.numel()] = buffer
        values[buffer.numel() :] = 0.0
        self.kept.add_to(values, parameters)
        values = values.view(blocks, block_elems)
        norms = torch.linalg.vector_norm(values, dim=1)
        return _Bucket(buffer, parameters, values, Summand(norms, dist.ReduceOp.SUM))

    def _second(self, begun: _Bucket) -> Summand:
        norms = begun.first.tensor
        begun.chosen = largest(norms, math.ceil(self._what.ratio * len(norms)))
        begun.sent = begun.values[begun.chosen]
        begun.values[begun.chosen] = 0.0
        self.kept.keep(begun.values.view(-1), begun.parameters)
        begun.buffer.zero_()
        return Summand(begun.sent, dist.ReduceOp.AVG, self._coding)

    def _write(self, begun: _Bucket) -> None:
        if begun.sent is None or begun.chosen is None:
            begun.buffer.copy_(begun.values)
        else:
            spread(begun.sent, begun.chosen, begun.buffer)


class TopkState(FeedbackState):
    """Of :func:`topk_hook`: the job that it sums in, and what it keeps of each parameter.

    All ranks make it alike. ``state_dict`` has what is kept by the parameters' names, in units of
    the gradients, as large as these: with it a training that goes on from a checkpoint goes on with
    the same bits.
    """

    def __init__(
        self,
        model: nn.Module,
        process_group: dist.ProcessGroup | None = None,
        *,
        ratio: float = 0.01,
        block_elems: int = BLOCK,
        warmup_steps: int = 10,
        wire: str = "32",
    ) -> None:
        """``model``: whose gradients come, the one that DDP wraps or DDP's. ``process_group``: the
        one that it was given (default: the default group); joins a job of its own unless it is
        ina's. ``ratio``: of a bucket's blocks, how many are sent, one at least. ``warmup_steps``:
        so many steps at first send everything. ``wire``: how the chosen blocks' values travel, as
        of :class:`ina.torch.Options`; what that rounds is not kept. Blocks until all ranks are
        there.

        Raises :class:`SettingError`: a value that is out of range; and what :class:`HookState`
        raises.
        """
        if not 0.0 < ratio <= 1.0:
            raise SettingError(f"ratio={ratio:g}: want more than 0, at most 1")
        if block_elems < 1:
            raise SettingError(f"block_elems={block_elems}: want 1 or more")
        if warmup_steps < 0:
            raise SettingError(f"warmup_steps={warmup_steps}: want 0 or more")
        what = Topk(ratio, block_elems, warmup_steps, check_wire("wire", wire))
        parameters = named_parameters(model)
        super().__init__(process_group, lambda _, workers: TopkBuckets(parameters, what, workers))


def topk_hook(state: TopkState, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Average the largest blocks of one bucket of gradients; for ``register_comm_hook`` with a
    TopkState. The other blocks of the bucket are 0.

    Where a gradient holds Inf or NaN, on any rank, all ranks get NaN in the bucket and nothing of
    it is kept. An error of the network becomes the future's, so ``backward()`` raises it.
    """
    return state.reduce(bucket)


def largest(norms: torch.Tensor, count: int) -> torch.Tensor:
    """Indices of so many of them, ascending; of equal ones the first: the same on all ranks."""
    order = torch.sort(norms, descending=True, stable=True).indices
    return order[:count].sort().values


def spread(blocks: torch.Tensor, chosen: torch.Tensor, flat: torch.Tensor) -> None:
    """Write blocks where they are in ``flat``, of which the last block may be a part.

    ``blocks``: (number, elements); ``chosen``: of each its index, ascending.
    """
    block_elems = blocks.shape[1]
    whole = flat.numel() // block_elems
    rows = blocks.to(flat.device, flat.dtype)
    inside = int((chosen < whole).sum())
    flat[: whole * block_elems].view(whole, block_elems)[chosen[:inside]] = rows[:inside]
    if inside < len(chosen):
        rest = flat[whole * block_elems :]
        rest.copy_(rows[inside, : len(rest)])
