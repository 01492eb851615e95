"""What names mean while a program is loaded."""

from __future__ import annotations

from dataclasses import dataclass, field

from ina.switch.errors import InvalidProgramError, UnsupportedProgramError
from ina.switch.ir.data import STANDARD, Counter, Field, Header, HeaderType, Register, Stack
from ina.switch.ir.expr import FieldRef
from ina.switch.ir.source import UNKNOWN, Source
from ina.switch.ir.stmt import HashInput

MAX_FIELD_BITS = 128


@dataclass
class Calculation:
    """A hash over values."""

    algorithm: str
    inputs: tuple[HashInput, ...]
    source: Source = UNKNOWN


@dataclass
class Scope:
    """Declarations by name, and where we are (for messages)."""

    types: dict[str, HeaderType] = field(default_factory=dict)
    headers: dict[str, Header] = field(default_factory=dict)
    stacks: dict[str, Stack] = field(default_factory=dict)
    registers: dict[str, Register] = field(default_factory=dict)
    counters: dict[str, Counter] = field(default_factory=dict)
    calculations: dict[str, Calculation] = field(default_factory=dict)
    joined: dict[str, str] = field(default_factory=dict)
    """Fields of standard_metadata that the program has in other metadata: in which."""
    learned: dict[int, tuple[FieldRef, ...]] = field(default_factory=dict)
    """What each digest tells, by id."""
    source: Source = UNKNOWN

    def refuse(self, construct: str) -> UnsupportedProgramError:
        """The error for a construct outside the subset, at the current place."""
        return UnsupportedProgramError(construct, str(self.source))

    def field(self, header: str, name: str) -> Field:
        """A header's field."""
        found = self.header(header).type.by_name.get(name)
        if found is None:
            raise InvalidProgramError(f"BMv2 JSON: header {header!r} has no field {name!r}")
        return found

    def home(self, header: str, name: str) -> str:
        """The instance that holds the field: standard_metadata for what joined it."""
        return STANDARD if self.joined.get(name) == header else header

    def header(self, name: str) -> Header:
        """A header instance."""
        try:
            return self.headers[name]
        except (KeyError, TypeError):
            raise InvalidProgramError(f"BMv2 JSON: unknown header {name!r}") from None

    def on_the_wire(self, name: str) -> Header:
        """A header instance that packets have; not metadata."""
        header = self.header(name)
        if header.metadata:
            raise InvalidProgramError(f"BMv2 JSON: {name!r} is metadata, no header")
        return header

    def stack(self, name: str) -> Stack:
        """A header stack."""
        try:
            return self.stacks[name]
        except (KeyError, TypeError):
            raise InvalidProgramError(f"BMv2 JSON: unknown header stack {name!r}") from None

    def register(self, name: str) -> Register:
        """A register array."""
        try:
            return self.registers[name]
        except (KeyError, TypeError):
            raise InvalidProgramError(f"BMv2 JSON: unknown register {name!r}") from None

    def calculation(self, name: str) -> Calculation:
        """A named calculation."""
        try:
            return self.calculations[name]
        except (KeyError, TypeError):
            raise InvalidProgramError(f"BMv2 JSON: unknown calculation {name!r}") from None
