"""The Gloo group that a job falls back to: made while all is well, used once the switch is lost.

Nothing else goes through it. Other collectives have Gloo's group of their own, so the order in
which ranks get to know of the loss, and start what had been under way, cannot mix with theirs.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch._C._distributed_c10d import PrefixStore, Store
from torch.distributed import AllreduceOptions, ProcessGroupGloo, ReduceOp, Work


class Peers(Protocol):
    """What ranks need of each other in order to agree; every rank calls the same in turn."""

    def gather(self, message: bytes) -> list[bytes]:
        """Every rank's message, by rank."""

    def unite(self, data: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The sum of all ranks' bytes: where one rank has data and the others 0, its data."""

    def add(self, words: NDArray[np.int32]) -> NDArray[np.int32]:
        """The sum of all ranks' int32, of any shape."""


class GlooPeers:
    """Peers over Gloo. Each method blocks; a rank that is gone makes it raise RuntimeError."""

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta) -> None:
        """Connects to all ranks; blocks until they are there or ``timeout`` has passed."""
        self._size = size
        # torch's stub lacks what every backend can do
        self._backend = ProcessGroupGloo(PrefixStore("ina/fallback", store), rank, size, timeout)

    def set_timeout(self, timeout: timedelta) -> None:
        """How long each of the later calls may take."""
        self._backend._set_default_timeout(timeout)

    def gather(self, message: bytes) -> list[bytes]:  # noqa: D102 - the protocol says it
        lengths = self._all_gather(torch.tensor([len(message)]))
        longest = max(1, *(int(one) for one in lengths))
        mine = np.frombuffer(message.ljust(longest, b"\0"), np.uint8).copy()
        padded = self._all_gather(torch.from_numpy(mine))
        return [one.numpy().tobytes()[: int(n)] for one, n in zip(padded, lengths, strict=True)]

    def unite(self, data: NDArray[np.uint8]) -> NDArray[np.uint8]:  # noqa: D102
        tensor = torch.from_numpy(data.copy())
        self.start_sum(tensor).wait()
        united: NDArray[np.uint8] = tensor.numpy()
        return united

    def add(self, words: NDArray[np.int32]) -> NDArray[np.int32]:  # noqa: D102
        tensor = torch.from_numpy(words.copy())
        self.start_sum(tensor).wait()
        added: NDArray[np.int32] = tensor.numpy()
        return added

    def start_sum(self, tensor: torch.Tensor) -> Work:
        """Start to sum ``tensor`` over the ranks, in place."""
        return self._start(tensor, ReduceOp.SUM)

    def start_least(self, tensor: torch.Tensor) -> Work:
        """Start to find the least over the ranks of each element, in place."""
        return self._start(tensor, ReduceOp.MIN)

    def start_most(self, tensor: torch.Tensor) -> Work:
        """Start to find the most over the ranks of each element, in place."""
        return self._start(tensor, ReduceOp.MAX)

    def _start(self, tensor: torch.Tensor, op: ReduceOp.RedOpType) -> Work:
        opts = AllreduceOptions()
        opts.reduceOp = op  # type: ignore[assignment]  # torch converts the enumeration
        work: Work = self._backend.allreduce([tensor], opts)  # type: ignore[attr-defined]
        return work

    def _all_gather(self, mine: torch.Tensor) -> list[torch.Tensor]:
        everyone = [torch.empty_like(mine) for _ in range(self._size)]
        self._backend.allgather([everyone], [mine]).wait()  # type: ignore[attr-defined]
        return everyone
