"""Operations in messages: what a worker has submitted."""

from __future__ import annotations

from ina.protocol.collective import Collective
from ina.rpc import controller_pb2 as pb2


def message_of(number: int, what: Collective) -> pb2.Operation:
    """What a worker says of an operation; ``number`` in the order of submission, from 1."""
    return pb2.Operation(
        number=number,
        elems=what.elems,
        value_type=what.value_type,
        reduction=what.op,
        kind=what.kind,
        root=what.root,
        rounding=what.rounding,
    )


def collective_of(operation: pb2.Operation) -> Collective:
    """What it said."""
    of = operation
    return Collective(of.value_type, of.elems, of.reduction, of.kind, of.root, of.rounding)
