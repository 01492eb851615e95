"""DDP communication hook: gradients through the network, everything else where it was.

For users who keep Gloo or NCCL as backend::

    model.register_comm_hook(ina.torch.HookState(), ina.torch.allreduce_hook)
"""

# No `from __future__ import annotations`: DDP compares the hook's annotations with classes.

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import GradBucket
from torch.distributed import Work

from ina.torch.env import check_sparse
from ina.torch.errors import NotInaGroupError
from ina.torch.process_group import ProcessGroupIna
from ina.torch.stats import GroupStats


class HookState:
    """The job that :func:`allreduce_hook` sums in, beside the group that the model uses.

    It has a process group of backend ``ina`` with the same ranks, so a job, a session and slots of
    its own. All ranks make and close it together. ``destroy_process_group()`` closes it too.
    """

    def __init__(
        self,
        process_group: dist.ProcessGroup | None = None,
        *,
        sparse: str | int | None = None,
    ) -> None:
        """Join a job with the ranks of ``process_group`` (default: the default group).

        Pass the group that the model was given. A group of backend ``ina`` is used as it is.
        ``sparse``: whether gradients leave out blocks that are zero on all ranks, as of
        :class:`ina.torch.Options`; None: as the environment or that group says. Blocks until all
        ranks are there; raises what ``init_process_group("ina")`` raises, and SettingError.
        """
        if sparse is not None:
            check_sparse("sparse", sparse)
        parent = process_group if process_group is not None else dist.group.WORLD
        self.group, self._owned = self._joined(parent)
        self._buckets = self.group.by_blocks(sparse)

    def _joined(self, parent: dist.ProcessGroup | None) -> tuple[ProcessGroupIna, bool]:
        """A group, and whether it is this one's own."""
        if isinstance(parent, ProcessGroupIna):
            return parent, False
        group = dist.new_group(
            dist.get_process_group_ranks(parent),
            backend="ina",
            # Ranks outside of a sub-group do not know of this hook.
            use_local_synchronization=parent is not dist.group.WORLD,
            group_desc="ina.torch.allreduce_hook",
        )
        if not isinstance(group, ProcessGroupIna):
            raise NotInaGroupError(f"HookState: this process is not in {parent}")
        return group, True

    def average(self, tensor: torch.Tensor, bucket: GradBucket) -> Work:
        """Begin the average of a bucket's gradients: see :func:`allreduce_hook`."""
        index, is_last = bucket.index(), bucket.is_last()
        return self.group.average_bucket(tensor, self._buckets, index, is_last=is_last)

    def stats(self) -> GroupStats:
        """Counters of the hook's job in this process."""
        return self.group.stats()

    def close(self) -> None:
        """Leave the job; the hook raises GroupClosedError from then on."""
        if self._owned:
            self._owned = False
            dist.destroy_process_group(self.group)


_of_default_group: tuple[dist.ProcessGroup, HookState] | None = None


def allreduce_hook(
    state: HookState | dist.ProcessGroup | None, bucket: GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Average one bucket of gradients over the ranks in the network; for ``register_comm_hook``.

    ``state`` is a :class:`HookState`, a process group of backend ``ina``, or None: then the first
    call makes a HookState of the default group, and every model with None shares it. float32,
    float16 and bfloat16 gradients are summed by the network, other dtypes by Gloo (which a warning
    says once). The future holds the bucket's buffer with the average; an error of the network
    becomes the future's, so ``backward()`` raises it.

    Raises :class:`NotInaGroupError` if ``state`` is a group of another backend.
    """
    buffer = bucket.buffer()
    values = torch.view_as_real(buffer) if buffer.is_complex() else buffer
    of = _sums_of(state)
    if isinstance(of, HookState):
        work = of.average(values, bucket)
    else:
        work = of.allreduce([values], dist.ReduceOp.AVG)

    def reduced(done: torch.futures.Future[list[torch.Tensor]]) -> torch.Tensor:
        done.value()  # raises the operation's error
        return buffer

    return work.get_future().then(reduced)


def _sums_of(state: HookState | dist.ProcessGroup | None) -> HookState | ProcessGroupIna:
    global _of_default_group
    if state is None:
        world = dist.group.WORLD
        assert world is not None, "DDP needs a default group"
        if _of_default_group is None or _of_default_group[0] is not world:
            _of_default_group = (world, HookState(world))
        state = _of_default_group[1]
    if not isinstance(state, HookState | ProcessGroupIna):
        raise NotInaGroupError(
            f"allreduce_hook: its state is {type(state).__name__}; pass ina.torch.HookState() or a"
            " process group of backend ina"
        )
    return state
