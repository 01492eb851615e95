"""Headers, metadata and stacks: the typed state that a packet carries through the pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

STANDARD = "standard_metadata"
"""v1model's own metadata instance."""


@dataclass(frozen=True)
class Field:
    """One field of a header type; ``offset_bits`` counts from the header's first wire bit."""

    name: str
    width_bits: int
    signed: bool
    offset_bits: int


@dataclass(frozen=True)
class HeaderType:
    """A header or metadata struct: fields of fixed width in wire order."""

    name: str
    fields: tuple[Field, ...]

    @property
    def width_bits(self) -> int:
        """Width on the wire."""
        return sum(field.width_bits for field in self.fields)

    @cached_property
    def by_name(self) -> dict[str, Field]:
        """Fields by name."""
        return {field.name: field for field in self.fields}


@dataclass(frozen=True)
class Header:
    """An instance. Members of a stack know it: ``stack`` and their position ``stack_index``."""

    name: str
    type: HeaderType
    metadata: bool = False
    stack: str = ""
    stack_index: int = 0


@dataclass(frozen=True)
class Stack:
    """A header stack; ``members`` are instance names, bottom first."""

    name: str
    type: HeaderType
    members: tuple[str, ...]


@dataclass(frozen=True)
class Register:
    """A register array; all elements start at 0."""

    name: str
    index: int
    size: int
    width_bits: int


@dataclass(frozen=True)
class Counter:
    """An indirect counter array: packets and bytes for each index."""

    name: str
    index: int
    size: int


MIN_ARRAY_FIELDS = 8
_ARRAY_WIDTHS = (8, 16, 32, 64)


@dataclass(frozen=True)
class FieldArray:
    """A run of equal byte-aligned fields: fields first .. first+count-1 of a header type."""

    first: int
    count: int
    width_bits: int


@cache
def field_arrays(header_type: HeaderType) -> tuple[FieldArray, ...]:
    """The runs of at least 8 equal fields of 8, 16, 32 or 64 bits."""
    arrays, position = [], 0
    fields = header_type.fields
    while position < len(fields):
        first, count = fields[position], 1
        while position + count < len(fields):
            other = fields[position + count]
            if (other.width_bits, other.signed) != (first.width_bits, first.signed):
                break
            count += 1
        fits = first.width_bits in _ARRAY_WIDTHS and first.offset_bits % 8 == 0 and not first.signed
        if fits and count >= MIN_ARRAY_FIELDS:
            arrays.append(FieldArray(position, count, first.width_bits))
        position += count
    return tuple(arrays)
