"""Which dense all-reduces go by blocks, of which those that are zero on all ranks are not sent.

All ranks must choose alike, so they choose by what they agree on: the unions of earlier sums. Who
begins a sum may be ahead of those that are under way; so it goes by one that is so far behind that
it is always there in a training, and waits for it where it is not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import torch

from ina.errors import InaError
from ina.host.arrays import Array
from ina.host.sparse import BlockStream, BlockSum
from ina.host.sparse.kernels import Numbers
from ina.protocol.coding import Coding
from ina.protocol.collective import Reduction
from ina.torch.env import AUTO, OFF, SparseSetting, check_sparse
from ina.torch.parts import DenseBlocks, SparsePart
from ina.torch.worker import Sent, Worker

GAINS_BELOW = 0.5
"""Of the blocks in the union: beyond, it hardly pays to look for it."""
REST = 100
"""Sums of a kind that go as they are before it is tried again."""
LEAST_BLOCKS = 32
"""Of a tensor that is worth it, where nobody asked for a block size."""

LAG = 16
"""Sums of a kind that may be under way before one waits for the first of them."""
LAG_OF_BUCKETS = 1
"""Where a kind is a bucket, of which there is one in a step."""


@dataclass
class _Kind:
    """Sums that are alike."""

    under_way: deque[BlockSum[Any]] = field(default_factory=deque)
    rests: int = 0


class BlockChoice:
    """Of a group, or of a hook; not thread-safe."""

    def __init__(self, setting: SparseSetting, usual_elems: int, lag: int = LAG) -> None:
        """``usual_elems``: of a block, where nobody asked for a size."""
        self._setting = setting
        self._lag = lag
        self._block_elems = usual_elems if isinstance(setting, str) else setting
        self._kinds: dict[Hashable, _Kind] = {}

    def part(self, tensor: torch.Tensor, kind: Hashable) -> DenseBlocks | None:
        """What of a contiguous tensor goes; None: all of it, as it is. ``kind``: of the sum, whose
        earlier ones say what this one is like; the same on all ranks."""
        if self._setting == OFF or not tensor.dtype.is_floating_point:
            return None
        if tensor.device.type != "cpu" or tensor.numel() <= self._block_elems:
            return None
        if self._setting != AUTO:
            return DenseBlocks(tensor, self._block_elems, lambda _: None)
        if tensor.numel() < LEAST_BLOCKS * self._block_elems:
            return None
        one = self._kinds.setdefault(kind, _Kind())
        if not self._tries(one):
            return None
        return DenseBlocks(tensor, self._block_elems, one.under_way.append)

    def _tries(self, kind: _Kind) -> bool:
        if kind.rests:
            kind.rests -= 1
            return False
        while len(kind.under_way) >= self._lag:
            if not _gained(kind.under_way.popleft()):
                kind.under_way.clear()
                kind.rests = REST - 1
                return False
        return True


def _gained(one: BlockSum[Any]) -> bool:
    try:
        one.wait()
    except InaError:  # who waits for it hears of it
        return False
    assert one.union is not None
    return one.union < GAINS_BELOW * one.blocks


class _Told:
    """A part that tells of its sum, before whoever waits for that."""

    def __init__(self, part: SparsePart, summed: Sent) -> None:
        self.marks, self.own, self.dtype = part.marks, part.own, part.dtype
        self._part, self._summed = part, summed
        self._over_network = True

    def sent(self, over_network: bool) -> None:
        """Where counters or values went."""
        self._over_network &= over_network

    def values(self, union: Numbers) -> tuple[Array, Array]:
        """See Part."""
        return self._part.values(union)

    def result(self, union: Numbers) -> None:
        """See Part."""
        self._part.result(union)
        self._summed(self._over_network)


class Pipeline:
    """Sparse sums in a row: the values of each go after the ranks have begun to agree on the next.

    For one thread. They are flushed before anybody waits for the last one.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._last: BlockStream | None = None

    def begin(
        self, part: SparsePart, op: Reduction, coding: Coding | None, summed: Sent
    ) -> BlockSum[Any]:
        """Its place in the order of operations is this. ``summed`` hears when its sum is there
        whether all of it went over the network."""
        told = _Told(part, summed)
        stream = self._worker.sparse(told.sent)
        try:
            one = stream.begin(told, op, self._worker.coding if coding is None else coding)
        finally:
            self.flush()
        self._last = stream
        part.began(one)
        return one

    def flush(self) -> None:
        """None comes after the last one for now. Idempotent."""
        last, self._last = self._last, None
        if last is not None:
            last.flush()


class Blockwise:
    """What a group, or a hook, needs to sum by blocks."""

    def __init__(self, worker: Worker, setting: SparseSetting, lag: int = LAG) -> None:
        """Raises SettingError."""
        setting, a_packets = check_sparse("sparse", setting), 0
        if setting == AUTO:
            a_packets = worker.values_per_packet * 32 // worker.coding.bits
        self.choice = BlockChoice(setting, a_packets, lag)
        self.pipeline = Pipeline(worker)
