"""A session that has stopped, so that its operations can be finished without the switch."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

from ina.errors import InaError
from ina.extension.host import LaneResult, PendingTensor, TransportEngine
from ina.host.arrays import Array, dtype_of
from ina.host.chunks import ChunkMap, Ranges, Span
from ina.host.errors import RecoveryError
from ina.host.recovery import Export, Lane, MappedLanes, Pending, SumAgain, Transfer
from ina.host.ticket import Ticket
from ina.protocol.codec import WIRE_INT32
from ina.protocol.collective import Collective, CollectiveKind


class Frozen:
    """What Session.freeze() returns; :mod:`ina.host.recovery` says how to use it. Not thread-safe.

    All methods raise RecoveryError when they are asked for what is not there.
    """

    def __init__(self, transport: TransportEngine, export: Export, errors: dict[int, InaError]):
        """Use Session.freeze(). `errors`: where the session looks up why an operation failed."""
        self._transport = transport
        self._errors = errors
        self.export = export
        self._pending = {tensor.operation: tensor for tensor in transport.pending()}

    def lane_data(self, transfer: Transfer) -> bytes:
        """Return the values of the result that this rank supplies, as they lie in the tensor."""
        result = self._transport.lane_result(transfer.epoch, transfer.lane)
        if not result.accepted or result.seq != transfer.seq or not result.data:
            raise RecoveryError(f"this rank does not have the result of {transfer}")
        return result.data

    def put(self, transfer: Transfer, data: bytes = b"") -> None:
        """Write the values of the result that this rank lacks into the tensor.

        `data`: nothing where there is no supplier: the rank gets none.
        """
        self._put(transfer, data, non_finite=False)

    def own_part(self, again: SumAgain) -> NDArray[np.int32]:
        """Return what this rank gave to the sum, that no rank has: int32, a packet's words."""
        try:
            words = self._transport.own_part(again.epoch, again.lane, again.seq)
        except (ValueError, RuntimeError) as error:
            raise RecoveryError(f"{again}: {error}") from None
        if not words:  # it is the owner
            return np.zeros(self.export.chunk_words, np.int32)
        return np.frombuffer(words, WIRE_INT32).astype(np.int32)

    def put_sum(self, again: SumAgain, words: NDArray[np.int32]) -> None:
        """Take the sum of all ranks' parts, where this one lacks the result."""
        data = words.astype(WIRE_INT32).tobytes() if again.owner == self.export.rank else b""
        self._put(again, data, non_finite=again.non_finite)

    def _put(self, lacking: Transfer | SumAgain, data: bytes, *, non_finite: bool) -> None:
        epoch, lane, seq = lacking.epoch, lacking.lane, lacking.seq
        try:
            self._transport.put_result(epoch, lane, seq, data, non_finite)
        except (ValueError, RuntimeError) as error:
            raise RecoveryError(f"{lacking}: {error}") from None

    def spans(self, operation: int, chunks: Ranges) -> tuple[Span, ...]:
        """Return what values these chunks of a pending operation have, part by part."""
        what = Collective(*self._tensor(operation).collective)
        try:
            return self._map(what).spans(chunks)
        except ValueError as error:
            raise RecoveryError(f"operation {operation}: {error}") from None

    def inputs(self, operation: int, span: Span) -> Array | None:
        """Return this rank's input of undone chunks: a view, not to be written to.

        None: it has none.
        """
        tensor = self._tensor(operation)
        what = Collective(*tensor.collective)
        if not what.has_values(span.part, self.export.rank):
            return None
        has_all = what.kind == CollectiveKind.REDUCE_SCATTER
        view = self._view(tensor, tensor.address_in, span, has_all=has_all)
        view.flags.writeable = False
        return view

    def outputs(self, operation: int, span: Span) -> Array | None:
        """Return where the result of these chunks goes: a view, may be the inputs' memory.

        None: this rank gets none.
        """
        tensor = self._tensor(operation)
        what = Collective(*tensor.collective)
        if not what.gets_part(span.part, self.export.rank):
            return None
        has_all = what.kind == CollectiveKind.ALL_GATHER
        return self._view(tensor, tensor.address_out, span, has_all=has_all)

    def complete(self, operation: int) -> None:
        """End a pending operation: its result is in place. Views of it are invalid from now on."""
        self._end(operation, done=True)

    def fail(self, operation: int, error: InaError) -> None:
        """End a pending operation with an error."""
        self._errors[operation] = error
        self._end(operation, done=False)

    def _end(self, operation: int, *, done: bool) -> None:
        self._tensor(operation)
        del self._pending[operation]
        try:
            self._transport.end_operation(operation, done)
        except (ValueError, RuntimeError) as error:
            raise RecoveryError(str(error)) from None

    def _tensor(self, operation: int) -> PendingTensor:
        tensor = self._pending.get(operation)
        if tensor is None:
            raise RecoveryError(f"operation {operation} is not pending on this rank")
        return tensor

    def _map(self, what: Collective) -> ChunkMap:
        return ChunkMap(what, self.export.world_size, self.export.chunk_words)

    def _view(self, tensor: PendingTensor, address: int, span: Span, *, has_all: bool) -> Array:
        """`has_all`: the memory has all ranks' parts, one behind the other."""
        what = Collective(*tensor.collective)
        dtype = dtype_of(what.value_type)
        first = span.first + (span.part * what.elems if has_all else 0)
        memory = (ctypes.c_uint8 * (span.elems * dtype.itemsize)).from_address(
            address + first * dtype.itemsize
        )
        return np.ctypeslib.as_array(memory).view(dtype)


def export_of(ticket: Ticket, submitted: int, transport: TransportEngine) -> Export:
    """Return what a rank tells the others. `ticket`: the one that it joined with."""
    mappings = tuple(
        MappedLanes(epoch, tuple(_lane(transport.lane_result(epoch, i)) for i in range(window)))
        for epoch, window in transport.mappings()
    )
    operations = tuple(
        Pending(tensor.operation, Collective(*tensor.collective), tuple(tensor.undone))
        for tensor in transport.pending()
    )
    return Export(
        job=ticket.job,
        epoch=ticket.epoch,
        rank=ticket.rank,
        world_size=ticket.world_size,
        chunk_words=ticket.values_per_packet,
        submitted=submitted,
        mappings=mappings,
        pending=operations,
    )


def _lane(result: LaneResult) -> Lane | None:
    if not result.accepted:
        return None
    return Lane(
        *(result.seq, result.operation, result.chunk, result.exponent_only),
        has_values=bool(result.data),
        non_finite=result.non_finite,
    )
