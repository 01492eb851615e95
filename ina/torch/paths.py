"""Which path a collective takes, network or Gloo; says why once, and counts."""

from __future__ import annotations

import logging
import threading
from collections import Counter

import torch
from torch.distributed import ReduceOp

from ina.protocol.spec import ValueType
from ina.torch.errors import UnsupportedDeviceError

_log = logging.getLogger("ina.torch")

VALUE_TYPES = {
    torch.int32: ValueType.INT32,
    torch.float32: ValueType.FLOAT32,
    torch.float16: ValueType.FLOAT16,
    torch.bfloat16: ValueType.BFLOAT16,
}
"""The dtypes that the network sums."""

_SUMMED_TYPES = ", ".join(str(dtype).removeprefix("torch.") for dtype in VALUE_TYPES)


def network_op(op: ReduceOp | ReduceOp.RedOpType) -> str | None:
    """The session's name of a torch reduction, or None if the network does not do it."""
    if op == ReduceOp.SUM:
        return "sum"
    if op == ReduceOp.AVG:
        return "avg"
    return None


def op_name(op: ReduceOp | ReduceOp.RedOpType) -> str:
    """``SUM`` for ``ReduceOp.SUM``, for messages."""
    for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"):
        if op == getattr(ReduceOp, name):
            return name
    return str(op)


def why_not_network(tensor: torch.Tensor, op: ReduceOp | ReduceOp.RedOpType) -> str | None:
    """Why the network cannot all-reduce this tensor, or None if it can.

    Raises :class:`UnsupportedDeviceError` for a tensor outside CPU memory.
    """
    if tensor.device.type != "cpu":
        raise UnsupportedDeviceError(
            f"all_reduce of a tensor on {tensor.device}: backend ina takes CPU tensors; copy it"
            " with .cpu() first"
        )
    if network_op(op) is None:
        return "the network sums SUM and AVG only"
    if tensor.layout is not torch.strided:
        return f"the network sums dense tensors, not {str(tensor.layout).removeprefix('torch.')}"
    if tensor.dtype not in VALUE_TYPES:
        return f"the network sums {_SUMMED_TYPES}"
    return None


class Paths:
    """Counts the collectives of one group by the path they took; thread-safe."""

    def __init__(self, group: str, *, talks: bool) -> None:
        """``talks``: whether this process logs at the normal levels (rank 0 does, for all)."""
        self._group = group
        self._talks = talks
        self._lock = threading.Lock()
        self._said: set[str] = set()
        self.network_all_reduces = 0
        self.network_elems = 0
        self.network_bytes = 0
        self.gloo_all_reduces: Counter[str] = Counter()
        self.gloo_others: Counter[str] = Counter()

    def network(self, tensor: torch.Tensor) -> None:
        """Count one all_reduce that the network sums."""
        with self._lock:
            self.network_all_reduces += 1
            self.network_elems += tensor.numel()
            self.network_bytes += tensor.numel() * tensor.element_size()

    def fallback(self, what: str, reason: str) -> None:
        """Count one all_reduce that goes through Gloo; ``what`` is its op and dtype."""
        with self._lock:
            self.gloo_all_reduces[what] += 1
        self._say(logging.WARNING, what, reason)

    def other(self, collective: str) -> None:
        """Count one collective other than all_reduce: these always go through Gloo."""
        with self._lock:
            self.gloo_others[collective] += 1
        self._say(logging.INFO, collective, "the network does all_reduce only")

    def _say(self, level: int, what: str, reason: str) -> None:
        with self._lock:
            if what in self._said:
                return
            self._said.add(what)
        _log.log(
            level if self._talks else logging.DEBUG,
            "ina: %s in group %s goes through Gloo because %s",
            what,
            self._group,
            reason,
        )
