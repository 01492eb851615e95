"""Which path a collective takes, network or Gloo; says why once, and counts."""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter

import torch
from torch.distributed import ReduceOp

from ina.protocol.coding import WHOLE, Coding
from ina.protocol.collective import Collective, Reduction
from ina.protocol.spec import ValueType

_log = logging.getLogger("ina.torch")

VALUE_TYPES = {
    torch.int32: ValueType.INT32,
    torch.float32: ValueType.FLOAT32,
    torch.float16: ValueType.FLOAT16,
    torch.bfloat16: ValueType.BFLOAT16,
}
"""The dtypes that the network sums."""

_SUMMED_TYPES = ", ".join(str(dtype).removeprefix("torch.") for dtype in VALUE_TYPES)


def network_op(op: ReduceOp | ReduceOp.RedOpType) -> Reduction | None:
    """What a torch reduction is, or None if the network does not do it."""
    if op == ReduceOp.SUM:
        return Reduction.SUM
    if op == ReduceOp.AVG:
        return Reduction.AVERAGE
    return None


def collective_of(tensor: torch.Tensor, op: Reduction, coding: Coding = WHOLE) -> Collective:
    """An all-reduce of a tensor, of one of these dtypes."""
    return coding.of(Collective(VALUE_TYPES[tensor.dtype], tensor.numel(), op))


def op_name(op: ReduceOp | ReduceOp.RedOpType) -> str:
    """``SUM`` for ``ReduceOp.SUM``, for messages."""
    for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"):
        if op == getattr(ReduceOp, name):
            return name
    return str(op)


def what_is(tensor: torch.Tensor) -> str:
    """``5 x float32``, for messages."""
    name = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout is torch.sparse_coo:
        return f"sparse {tuple(tensor.shape)} x {name}"
    return f"{tensor.numel()} x {name}"


def kind(collective: str, op: ReduceOp | ReduceOp.RedOpType | None, dtype: torch.dtype) -> str:
    """``all_reduce MAX of float32``, ``broadcast of bool``, for messages and counters."""
    what = collective if op is None else f"{collective} {op_name(op)}"
    return f"{what} of {str(dtype).removeprefix('torch.')}"


MOST_ROWS = 1 << 28
"""Of a sparse tensor, whether they are there or not: each is marked by a byte."""


def why_not_network(
    tensor: torch.Tensor, op: ReduceOp | ReduceOp.RedOpType, *, rows: bool = False
) -> str | None:
    """Why the network cannot sum this tensor over the ranks, or None if it can.

    ``rows``: whether this collective is one that takes sparse COO tensors.

    :class:`ina.torch.devices.DeviceGroups` knows which devices' tensors it sums.
    """
    if not _has_memory(tensor):
        return f"the network sums tensors with memory, which {type(tensor).__name__} has not"
    if network_op(op) is None:
        return "the network sums SUM and AVG only"
    if rows and tensor.layout is torch.sparse_coo:
        return _why_not_rows(tensor)
    if tensor.layout is not torch.strided:
        return f"the network sums dense tensors, not {str(tensor.layout).removeprefix('torch.')}"
    if tensor.dtype not in VALUE_TYPES:
        return f"the network sums {_SUMMED_TYPES}"
    return None


def why_not_moved(tensor: torch.Tensor) -> str | None:
    """Why the network cannot move this tensor's bytes, or None if it can."""
    if not _has_memory(tensor):
        return f"the network moves tensors with memory, which {type(tensor).__name__} has not"
    if tensor.layout is not torch.strided:
        return f"the network moves dense tensors, not {str(tensor.layout).removeprefix('torch.')}"
    if tensor.is_quantized:
        return "the network moves values, not torch's quantised tensors"
    return None


def _has_memory(tensor: torch.Tensor) -> bool:
    return type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__


def _why_not_rows(tensor: torch.Tensor) -> str | None:
    if tensor.dtype not in VALUE_TYPES:
        return f"the network sums {_SUMMED_TYPES}"
    if tensor.device.type != "cpu":
        return "the network sums sparse tensors in CPU memory"
    if tensor.sparse_dim() == 0:
        return "the network sums rows, and a sparse tensor without dimensions has none"
    if math.prod(tensor.shape[: tensor.sparse_dim()]) > MOST_ROWS:
        return f"the network sums sparse tensors of up to {MOST_ROWS} rows"
    return None


class Paths:
    """Counts the collectives of one group by the path they took; thread-safe."""

    def __init__(self, group: str, *, talks: bool) -> None:
        """``talks``: whether this process logs at the normal levels (rank 0 does, for all)."""
        self._group = group
        self._talks = talks
        self._lock = threading.Lock()
        self._said: set[str] = set()
        self._done: set[str] = set()  # by the network; said
        self.done: Counter[str] = Counter()
        """Tensors that the network has done, by collective."""
        self.network_elems = 0
        self.network_bytes = 0
        self.moved_bytes = 0
        self.sparse_all_reduces = 0
        self.sparse_blocks = 0
        self.sparse_own_blocks = 0
        self.sparse_union_blocks = 0
        self.gloo_all_reduces: Counter[str] = Counter()
        self.others: Counter[str] = Counter()

    def network(self, collective: str, tensor: torch.Tensor, elems: int) -> None:
        """Count one tensor that the network sums, and so many elements of it."""
        with self._lock:
            self.done[collective] += 1
            self.network_elems += elems
            self.network_bytes += elems * tensor.element_size()
        self._say_network(kind(collective, None, tensor.dtype))

    def moved(self, collective: str, what: str, size_bytes: int) -> None:
        """Count one tensor that the network moves, ``what``, and what a rank has of it then."""
        with self._lock:
            self.done[collective] += 1
            self.moved_bytes += size_bytes
        self._say_network(what)

    def _say_network(self, what: str) -> None:
        with self._lock:
            if what in self._done:
                return
            self._done.add(what)
        level = logging.INFO if self._talks else logging.DEBUG
        _log.log(level, "ina: %s in group %s goes through the network", what, self._group)

    def sparse(self, blocks: int, own: int, union: int) -> None:
        """Count one sparse sum: its tensor's blocks, those of this rank, and those of any."""
        with self._lock:
            self.sparse_all_reduces += 1
            self.sparse_blocks += blocks
            self.sparse_own_blocks += own
            self.sparse_union_blocks += union

    def fallback(self, what: str, reason: str) -> None:
        """Count one tensor that goes through Gloo; ``what`` is its :func:`kind`."""
        with self._lock:
            self.gloo_all_reduces[what] += 1
        self._say(logging.WARNING, what, reason)

    def other(
        self,
        collective: str,
        device_type: str,
        backend: str = "",
        config: str = "",
        *,
        reason: str | None = None,
    ) -> None:
        """Count one collective that the network never does, or not here, for which there is a
        ``reason``.

        ``backend`` does it, as ``config`` (``cpu:ina,cuda:nccl``) says; empty: Gloo.
        """
        what = collective if device_type == "cpu" else f"{collective} on {device_type}"
        with self._lock:
            self.others[what] += 1
        if backend:
            self._say(logging.INFO, what, f"the group was made with {config}", through=backend)
        else:
            self._say(logging.INFO, what, reason or "the network does not do it")

    def _say(self, level: int, what: str, reason: str, *, through: str = "Gloo") -> None:
        with self._lock:
            if what in self._said:
                return
            self._said.add(what)
        _log.log(
            level if self._talks else logging.DEBUG,
            "ina: %s in group %s goes through %s because %s",
            what,
            self._group,
            through,
            reason,
        )
