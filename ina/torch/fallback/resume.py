"""Sums over Gloo what the network had begun: the chunks that are done on no rank."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import torch

from ina.errors import InaError
from ina.host.arrays import Array, dtype_of
from ina.host.chunks import Span, total
from ina.host.errors import RecoveryError
from ina.host.frozen import Frozen
from ina.host.recovery import Pending, Plan, Sum
from ina.protocol.collective import Collective, CollectiveKind
from ina.protocol.spec import ValueType
from ina.torch.fallback.sums import GlooSum, GlooSums
from ina.torch.paths import VALUE_TYPES

_DTYPES = {int(value_type): dtype for dtype, value_type in VALUE_TYPES.items()}


class Resumption:
    """What was under way on one rank when its session froze."""

    def __init__(self, frozen: Frozen, before: int = 0) -> None:
        """``before``: sums of the group that went elsewhere, before the session's first."""
        self._frozen, self._before = frozen, before
        self._lock = threading.Lock()  # it is not thread-safe
        self._pending = {one.operation: one for one in frozen.export.pending}
        self._left: set[int | None] = {*self._pending, None}  # None: until all have been started
        self.operations = 0
        self.elems = 0
        """Of those, how many are summed over Gloo."""
        self.ended = threading.Event()
        """All that was under way has: the session is not needed any more."""

    def start(self, steps: Plan, sums: GlooSums) -> None:
        """Start the sums of all chunks that are left, in the order of submission.

        First what all ranks have submitted, then what only some have: the others come to it later.
        """
        later = [one for one in self._pending.values() if one.operation > steps.submitted]
        everything: list[Sum | Pending] = [*steps.sums, *later]
        for left in everything:
            if left.operation not in self._pending:
                continue
            self.operations += 1
            if left.undone:
                self._start(left, sums)
            else:
                self._complete(left.operation)
        self._count()

    def fail(self, error: InaError) -> None:
        """End what is still pending."""
        with self._lock:
            for operation in self._pending:
                try:
                    self._frozen.fail(operation, error)
                except RecoveryError:
                    continue  # has ended
        self.ended.set()

    def _start(self, left: Sum | Pending, sums: GlooSums) -> None:
        operation = left.operation
        with self._lock:
            spans = self._frozen.spans(operation, left.undone)
            packed = self._pack(operation, left.what, spans)
        self.elems += packed.size
        # NumPy's bfloat16 is not torch's: the bytes are the same.
        dtype = _DTYPES[ValueType(left.what.value_type).element]
        if left.what.is_moved:
            dtype = torch.uint8
        tensor = torch.from_numpy(packed.view(np.uint8)).view(dtype)
        one = GlooSum(left.what, tensor, spans=spans)
        one.number = self._before + operation

        def ended(one: GlooSum) -> None:
            try:
                one.wait()  # has ended
                self._write(operation, spans, packed)
            except InaError as error:
                with self._lock:
                    self._frozen.fail(operation, error)
                self._count(operation)

        one.add_done_callback(ended)
        sums.start(one)

    def _pack(self, operation: int, what: Collective, spans: Sequence[Span]) -> Array:
        """What this rank gives of them, one behind the other, and zeros where that is nothing."""
        if what.kind == CollectiveKind.BARRIER:
            return np.zeros(1, np.int32)
        packed = np.zeros(total(spans), dtype_of(what.value_type))
        begin = 0
        for span in spans:
            values = self._frozen.inputs(operation, span)
            if values is not None:
                packed[begin : begin + span.elems] = values
            begin += span.elems
        return packed

    def _write(self, operation: int, spans: Sequence[Span], packed: Array) -> None:
        begin = 0
        with self._lock:
            for span in spans:
                out = self._frozen.outputs(operation, span)
                if out is not None:
                    out[:] = packed[begin : begin + span.elems]
                begin += span.elems
        self._complete(operation)

    def _complete(self, operation: int) -> None:
        with self._lock:
            self._frozen.complete(operation)
        self._count(operation)

    def _count(self, operation: int | None = None) -> None:
        with self._lock:
            self._left.discard(operation)
            if not self._left:
                self.ended.set()
