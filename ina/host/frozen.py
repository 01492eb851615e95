"""A session that has stopped, so that its operations can be finished without the switch."""

from __future__ import annotations

import ctypes

import numpy as np

from ina.errors import InaError
from ina.extension.host import LaneResult, PendingTensor, TransportEngine
from ina.host.arrays import VALUE_TYPES, Array
from ina.host.errors import RecoveryError
from ina.host.recovery import Export, Lane, MappedLanes, Pending, Transfer
from ina.host.ticket import Ticket
from ina.protocol.coding import values_per_word
from ina.protocol.collective import Collective
from ina.protocol.spec import ValueType

_DTYPES = {value_type: dtype for dtype, value_type in VALUE_TYPES.items()}


class Frozen:
    """What Session.freeze() returns; :mod:`ina.host.recovery` says how to use it. Not thread-safe.

    Ranges of chunks are (first, end) in chunks of `export.chunk_words` words; an operation's
    last chunk may be shorter. All methods raise RecoveryError when they are asked for what is not
    there.
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

    def put(self, transfer: Transfer, data: bytes) -> None:
        """Write the values of the result that this rank lacks into the tensor."""
        try:
            self._transport.put_result(transfer.epoch, transfer.lane, transfer.seq, data)
        except (ValueError, RuntimeError) as error:
            raise RecoveryError(f"{transfer}: {error}") from None

    def inputs(self, operation: int, chunks: tuple[int, int]) -> Array:
        """Return this rank's input of a range of undone chunks: a view, not to be written to."""
        tensor = self._tensor(operation)
        view = self._view(tensor, tensor.address_in, chunks)
        view.flags.writeable = False
        return view

    def outputs(self, operation: int, chunks: tuple[int, int]) -> Array:
        """Return where the result of a range of chunks goes: a view, may be the inputs' memory.

        Where this rank gets no values it is memory that nobody reads.
        """
        tensor = self._tensor(operation)
        if Collective(*tensor.collective).gets(self.export.rank):
            return self._view(tensor, tensor.address_out, chunks)
        return np.empty_like(self._view(tensor, tensor.address_in, chunks))

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

    def _view(self, tensor: PendingTensor, address: int, chunks: tuple[int, int]) -> Array:
        what = Collective(*tensor.collective)
        dtype = _DTYPES[ValueType(what.value_type).element]
        chunk_elems = self.export.chunk_words * values_per_word(what.value_type)
        begin, end = chunks[0] * chunk_elems, chunks[1] * chunk_elems
        end = min(end, what.elems)
        if not 0 <= begin < end:
            raise RecoveryError(f"operation {tensor.operation} has no chunks {chunks}")
        memory = (ctypes.c_uint8 * ((end - begin) * dtype.itemsize)).from_address(
            address + begin * dtype.itemsize
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
    return Lane(result.seq, result.operation, result.chunk, result.exponent_only, bool(result.data))
