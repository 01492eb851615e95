"""Where fields live while a packet is processed: in a place of their own, in an array, or nowhere.

Fields that nobody looks at, and those that are read where they stand, have no place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ina.switch.ir.data import FieldArray, HeaderType, field_arrays
from ina.switch.ir.program import Program
from ina.switch.passes.uses import TypeUse, Uses


@dataclass(frozen=True)
class Storage:
    """The fields of a header type, or of a metadata instance, that are kept unpacked."""

    type: HeaderType
    scalars: tuple[str, ...]
    arrays: tuple[FieldArray, ...]


def array_names(header_type: HeaderType, array: FieldArray) -> tuple[str, ...]:
    """The fields of the array."""
    fields = header_type.fields[array.first : array.first + array.count]
    return tuple(field.name for field in fields)


def store_headers(program: Program, uses: Uses) -> dict[str, Storage]:
    """By header type."""
    return {
        header.type.name: _stored(header.type, uses.types[header.type.name])
        for header in program.headers.values()
        if not header.metadata
    }


def store_metadata(program: Program, uses: Uses) -> dict[str, Storage]:
    """By metadata instance: the fields that the program names."""
    return {
        header.name: Storage(
            header.type,
            tuple(
                field.name
                for field in header.type.fields
                if field.name in uses.mentioned.get(header.name, ())
            ),
            (),
        )
        for header in program.headers.values()
        if header.metadata
    }


def _stored(header_type: HeaderType, use: TypeUse) -> Storage:
    runs = field_arrays(header_type)
    arrays = tuple(a for a in runs if not use.touched.isdisjoint(array_names(header_type, a)))
    nowhere = use.in_place.union(*(array_names(header_type, array) for array in runs))
    names = (field.name for field in header_type.fields)
    scalars = tuple(name for name in names if name in use.touched and name not in nowhere)
    return Storage(header_type, scalars, arrays)


def apart_headers(program: Program, types: Mapping[str, Storage]) -> frozenset[str]:
    """Headers that hold arrays, or belong to a stack.

    They are kept apart from the rest of the packet: indexing them takes their address, and what has
    no address taken can live in machine registers.
    """
    return frozenset(
        header.name
        for header in program.headers.values()
        if not header.metadata and (header.stack or types[header.type.name].arrays)
    )
