"""What ports have dropped, as entities of P4Runtime: an extern of ina's own, which others lack.

P4Runtime has no counters of ports. It leaves numbers of externs to whoever has more than it knows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import msgspec
from finsy.proto import p4r
from google.protobuf import any_pb2, struct_pb2

from ina.tables.values import PortDrop

EXTERN_TYPE_ID = 0xA1
"""Of the range that P4Ids leaves to architectures."""


def wanted() -> p4r.Entity:
    """What a read asks for."""
    return p4r.Entity(extern_entry=p4r.ExternEntry(extern_type_id=EXTERN_TYPE_ID))


def is_wanted(entity: p4r.Entity) -> bool:
    """Whether it is :func:`wanted`."""
    has = entity.WhichOneof("entity") == "extern_entry"
    return has and entity.extern_entry.extern_type_id == EXTERN_TYPE_ID


def encode(drops: Iterable[PortDrop]) -> list[p4r.Entity]:
    """One entity each."""
    found = []
    for drop in drops:
        told = struct_pb2.Struct()
        told.update(msgspec.to_builtins(drop))
        entry = any_pb2.Any()
        entry.Pack(told)
        extern = p4r.ExternEntry(extern_type_id=EXTERN_TYPE_ID, extern_id=drop.port, entry=entry)
        found.append(p4r.Entity(extern_entry=extern))
    return found


def decode(entities: Iterable[p4r.Entity]) -> list[PortDrop]:
    """What says something else is left out."""
    found = []
    for entity in filter(is_wanted, entities):
        told = struct_pb2.Struct()
        if entity.extern_entry.entry.Unpack(told):
            with contextlib.suppress(msgspec.ValidationError):  # its numbers are no integers
                found.append(msgspec.convert(dict(told), PortDrop, strict=False))
    return found
