"""Statements: bodies of actions, of parser states and of the two pipelines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union

from ina.switch.ir.expr import Expr, LValue
from ina.switch.ir.source import UNKNOWN, Source

Block = tuple["Stmt", ...]


@dataclass(frozen=True)
class Assign:
    """``target = value``, reduced to the target's width."""

    target: LValue
    value: Expr
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class CopyHeader:
    """Copy fields and validity; copying from an invalid header only invalidates. No metadata."""

    target: HeaderRef
    value: HeaderRef
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class HeaderRef:
    """A header instance, or an element of a stack (``index`` given)."""

    name: str
    index: Expr | None = None


@dataclass(frozen=True)
class SetValid:
    """``valid`` True: make valid, all fields 0 if it was not. False: make invalid."""

    header: HeaderRef
    valid: bool
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class CopyStack:
    """Copy all elements and the fill of a stack."""

    target: str
    value: str
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class ShiftStack:
    """``push_front(count)`` if count > 0, ``pop_front(-count)`` if it is negative."""

    stack: str
    count: int
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class RegisterRead:
    """``target = register[index]``; an index out of range reads 0."""

    target: LValue
    register: RegisterRef
    index: Expr
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class RegisterRef:
    """A register by name; inside a loop, ``array`` holds one register for each iteration."""

    name: str
    array: tuple[str, ...] = ()


@dataclass(frozen=True)
class RegisterWrite:
    """``register[index] = value``; an index out of range writes nothing."""

    register: RegisterRef
    index: Expr
    value: Expr
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class Count:
    """Add this packet to a counter; an index out of range counts nothing."""

    counter: str
    index: Expr
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class Hash:
    """``target = base + hash(inputs) mod size``."""

    target: LValue
    algorithm: str
    inputs: tuple[HashInput, ...]
    base: Expr
    size: Expr
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class HashInput:
    """One value of a hash or checksum, ``width_bits`` wide; skipped when ``header`` is invalid.

    ``payload``: not the value, but all bytes that the parser did not take; the last input.
    """

    value: Expr
    width_bits: int
    header: str = ""
    payload: bool = False


@dataclass(frozen=True)
class Truncate:
    """Send at most ``length`` bytes."""

    length_bytes: Expr
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class Exit:
    """Leave the pipeline at once."""

    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class If:
    """Two-way branch on a Boolean."""

    condition: Expr
    then: Block
    otherwise: Block
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class Apply:
    """Look a table up, run the action, then go on by hit, miss or action (index in program)."""

    table: str
    on_hit: Block = ()
    on_miss: Block = ()
    on_action: tuple[tuple[int, Block], ...] = ()
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class Loop:
    """``body`` for 0 .. count-1; iterations touch disjoint array elements, so order is free.

    ``number`` is its own in the program.
    """

    number: int
    count: int
    body: Block
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class Extract:
    """Parser: take a header off the packet; into the next element if ``name`` is a stack."""

    name: str
    stack: bool
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class Verify:
    """Parser: stop with this error unless the condition holds."""

    condition: Expr
    error: Expr
    source: Source = field(default=UNKNOWN, compare=False)


@dataclass(frozen=True)
class Advance:
    """Parser: skip bits (a multiple of 8)."""

    bits: Expr
    source: Source = field(default=UNKNOWN, compare=False)


Stmt = Union[  # noqa: UP007 (a forward reference needs Union here)
    Assign,
    CopyHeader,
    SetValid,
    CopyStack,
    ShiftStack,
    RegisterRead,
    RegisterWrite,
    Count,
    Hash,
    Truncate,
    Exit,
    If,
    Apply,
    Loop,
    Extract,
    Verify,
    Advance,
]
