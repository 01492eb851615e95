"""Operations in words: what a worker has submitted."""

from __future__ import annotations

from ina.protocol.spec import ValueType
from ina.rpc import controller_pb2 as pb2

_NAMES = {value.value: value.name.lower() for value in ValueType}


def describe(operation: pb2.Operation) -> str:
    """What is reduced: "sum of float32[1000]"."""
    name = _NAMES.get(operation.value_type, f"type {operation.value_type} ")
    return f"{'avg' if operation.average else 'sum'} of {name}[{operation.elems}]"
