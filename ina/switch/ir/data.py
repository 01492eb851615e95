"""Headers, metadata and stacks: the typed state that a packet carries through the pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


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
