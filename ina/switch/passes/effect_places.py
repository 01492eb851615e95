"""What code can read and change, and what some code may do with it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from ina.switch.ir.expr import ArrayFieldRef, FieldRef


class Kind(int, Enum):  # int: its hash is fast
    """What can be read or changed."""

    FIELD = 1
    """Of a header or metadata instance."""
    VALID = 2
    """Whether a header is there."""
    WIRE = 3
    """Where a header's bytes are in the packet."""
    FILL = 4
    """How many elements of a stack are in use."""
    ELEMENT = 5
    """Of an array of fields, the one of this iteration."""
    MEMBER = 6
    """Of an array of registers, the one of this iteration."""
    LOCAL = 7
    """A variable of an iteration."""
    REGISTER = 8
    COUNTER = 9
    CURSOR = 10
    """How far the parser is."""
    LENGTH = 11
    """The packet's length, as egress is told it."""
    TRUNCATION = 12
    """The most bytes to send."""
    ARRAY = 13
    """Of fields, all at once."""


OWN = frozenset({Kind.LOCAL, Kind.ELEMENT, Kind.MEMBER})
"""What each iteration of a loop has of its own."""


class Place(NamedTuple):
    """Something that a packet's way through a program can read or change."""

    kind: Kind
    name: str = ""
    """Of the header, stack, register ..."""
    field: str = ""
    """Of a FIELD; empty: all of the header, moved as a whole."""


def field_of(ref: FieldRef | ArrayFieldRef, name: str = "") -> Place:
    """The place of a field."""
    return Place(Kind.FIELD, ref.header, name or getattr(ref, "field", ""))


@dataclass(frozen=True)
class Places:
    """A set in which all of a header and each of its fields meet."""

    each: frozenset[Place] = frozenset()

    def __contains__(self, place: Place) -> bool:
        if place in self.each:
            return True
        if place.kind is not Kind.FIELD:
            return False
        return place._replace(field="") in self.each if place.field else place.name in self._headers

    def meets(self, other: Places) -> bool:
        """Whether they have something in common."""
        return any(place in other for place in self.each)

    def names(self, kind: Kind) -> frozenset[str]:
        """Of the places of this kind."""
        return frozenset(place.name for place in self.each if place.kind is kind)

    def fields(self) -> frozenset[tuple[str, str]]:
        """(header, field) of those that are named one by one."""
        places = self.each
        return frozenset((p.name, p.field) for p in places if p.kind is Kind.FIELD and p.field)

    @property
    def whole(self) -> frozenset[str]:
        """Headers all of whose fields are moved at once."""
        places = self.each
        return frozenset(p.name for p in places if p.kind is Kind.FIELD and not p.field)

    @cached_property
    def _headers(self) -> frozenset[str]:
        return self.names(Kind.FIELD)


@dataclass(frozen=True)
class Effects:
    """What some code may do; ``sets`` is what it surely gives a new value."""

    reads: Places = Places()
    writes: Places = Places()
    sets: Places = Places()
    leaves: bool = False
    """Whether what stands behind it may be left out."""

    def disturb(self, other: Effects) -> bool:
        """Whether they may change what the other code reads."""
        return self.writes.meets(other.reads)

    def then(self, other: Effects) -> Effects:
        """Of both, one after the other."""
        return Effects(
            Places(self.reads.each | other.reads.each),
            Places(self.writes.each | other.writes.each),
            Places(self.sets.each | other.sets.each),
            self.leaves or other.leaves,
        )

    @property
    def whole(self) -> frozenset[str]:
        """Headers that are read or written as a whole."""
        return self.reads.whole | self.writes.whole
