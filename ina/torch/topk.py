"""DDP communication hook that sends the blocks of gradients that are largest, and keeps the others.

What is not sent of a gradient is added to the next one's (error feedback), so that every value gets
its turn. Ranks choose the blocks together, by the sum of all ranks' norms: were each to choose its
own, the network would carry as many times as many as there are ranks. Blocks, and not single
values: those of 8 ranks that chose 1 % of theirs each would be in 92 % of all blocks of 32.
"""

# No `from __future__ import annotations`: DDP compares the hook's annotations with classes.

import math
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch._C._distributed_c10d import GradBucket

from ina.protocol.coding import CODINGS, MOST_WORKERS, WHOLE, too_narrow
from ina.torch.env import check_wire
from ina.torch.errors import SettingError
from ina.torch.feedback import Begun, FeedbackState

BLOCK = 360
"""Values that are sent together: a packet's of a build for an MTU of 1500."""


@dataclass
class _Bucket(Begun):
    """One on its way; its values are in blocks, the last of which zeros fill."""

    norms: torch.Tensor | None
    """Of each block; once agreed, the sum of all ranks'. None: a step of the warm-up, which has
    one sum, of all values."""


class TopkState(FeedbackState[_Bucket]):
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
        self._coding = CODINGS[check_wire("wire", wire)]
        super().__init__(model, process_group)
        if self._group.size() > MOST_WORKERS[self._coding.bits]:
            self.close()
            raise SettingError(f"TopkState: {too_narrow(self._coding.bits, self._group.size())}")
        self._ratio, self._block_elems, self._warmup_steps = ratio, block_elems, warmup_steps

    def _begin(self, bucket: GradBucket) -> _Bucket:
        buffer, parameters = bucket.buffer(), bucket.parameters()
        if self._step < self._warmup_steps:
            values = buffer.to("cpu", torch.float32)
            agreed = self._group.allreduce_coded(values, WHOLE, dist.ReduceOp.AVG)
            return _Bucket(buffer, parameters, values, agreed, None)
        blocks = -(-buffer.numel() // self._block_elems)
        values = torch.empty(blocks * self._block_elems)
        values[: buffer.numel()] = buffer
        values[buffer.numel() :] = 0.0
        self._kept.add_to(values, parameters)
        values = values.view(blocks, self._block_elems)
        norms = torch.linalg.vector_norm(values, dim=1)
        agreed = self._group.allreduce_coded(norms, WHOLE, dist.ReduceOp.SUM)
        return _Bucket(buffer, parameters, values, agreed, norms)

    def _send(self, bucket: _Bucket) -> None:
        if bucket.norms is None:
            self._end_with(bucket, bucket.agreed, lambda: bucket.buffer.copy_(bucket.values))
            return
        bucket.agreed.wait()
        if not bool(torch.isfinite(bucket.norms).all()):
            self._skip(bucket)
            return
        chosen = largest(bucket.norms, math.ceil(self._ratio * len(bucket.norms)))
        sent = bucket.values[chosen]
        bucket.values[chosen] = 0.0
        self._kept.keep(bucket.values.view(-1), bucket.parameters)
        work = self._group.allreduce_coded(sent, self._coding, dist.ReduceOp.AVG)

        bucket.buffer.zero_()
        self._end_with(bucket, work, lambda: spread(sent, chosen, bucket.buffer))


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
