"""The hooks with feedback for those who have no DDP: arrays for tensors. The virtual network's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.distributed import ReduceOp

from ina.torch.buckets import Begun, Buckets, Summand
from ina.torch.lowbit import Lowbit, LowbitBuckets
from ina.torch.topk import Topk, TopkBuckets

_TOPK = Topk(ratio=0.1, block_elems=50, warmup_steps=1)
"""Something is chosen of small buckets, and a training of few steps has both kinds of steps."""


@dataclass(frozen=True)
class Sum:
    """What the ranks are to sum, in place; a flat view of a tensor."""

    array: npt.NDArray[np.float32]
    op: str
    """``"sum"`` or ``"avg"``."""
    wire: str

    @classmethod
    def of(cls, summand: Summand) -> Sum:
        """The tensor's memory."""
        op = "avg" if summand.op == ReduceOp.AVG else "sum"
        return cls(summand.tensor.numpy().reshape(-1), op, str(summand.coding))


class VirtualHook:
    """One rank's hook, of a model whose buckets stay as they are."""

    def __init__(self, hook: str, sizes: Sequence[int], rank: int, workers: int) -> None:
        """``hook``: ``"lowbit8"``, ``"lowbit16"`` or ``"topk"``. ``sizes``: of each bucket its
        values, which are those of two parameters. Raises SettingError: it is not for so many.
        """
        self.rank = rank
        named = {}
        self._parameters = []
        for index, elems in enumerate(sizes):
            pair = [torch.empty(elems // 3), torch.empty(elems - elems // 3)]
            named.update({f"{index}.{part}": one for part, one in enumerate(pair)})
            self._parameters.append(pair)
        self._index = 0
        self._buckets: Buckets[Any]
        if hook == "topk":
            self._buckets = TopkBuckets(named.items(), _TOPK, workers)
        else:
            bits = int(hook.removeprefix("lowbit"))
            self._buckets = LowbitBuckets(named.items(), Lowbit(bits), rank, workers)

    def state(self) -> dict[str, Any]:
        """What a checkpoint has of it."""
        return self._buckets.state_dict()

    def load(self, state: dict[str, Any]) -> None:
        """Goes on from there."""
        self._buckets.load_state_dict(state)

    def begin_step(self) -> None:
        """Its buckets come from the first on."""
        self._index = 0
        self._buckets.begin_step()

    def begin(self, gradients: npt.NDArray[np.float32]) -> tuple[Begun, Sum]:
        """The next bucket's gradients, which the average replaces, and what to sum of it first."""
        begun = self._buckets.begin(torch.from_numpy(gradients), self._parameters[self._index])
        self._index += 1
        return begun, Sum.of(begun.first)

    def second(self, begun: Begun) -> Sum | None:
        """What to sum once that has come; None: nothing more."""
        found = self._buckets.second(begun) if begun.goes_twice else None
        return None if found is None else Sum.of(found)

    def write(self, begun: Begun) -> None:
        """All has come."""
        self._buckets.write(begun)

    def end_step(self) -> None:
        """All buckets have begun their last sums."""
        self._buckets.end_step()
