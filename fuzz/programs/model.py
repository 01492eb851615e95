"""A v1model program as data: what the generator makes, the minimiser cuts, and people read.

It says no more than P4 does. :mod:`fuzz.programs.lower` makes of it what p4c would.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Union

STANDARD = "standard_metadata"
META = "meta"
"""The instance that holds all user metadata."""
DROP_PORT = 511


# -- expressions --


@dataclass(frozen=True)
class Num:
    """A constant of a type."""

    value: int
    width_bits: int
    signed: bool = False


@dataclass(frozen=True)
class Bool:
    """true or false."""

    value: bool


@dataclass(frozen=True)
class Ref:
    """A field of a header or of metadata."""

    header: str
    field: str
    width_bits: int
    signed: bool = False


@dataclass(frozen=True)
class Last:
    """A field of the stack's element that was extracted last (parser only)."""

    stack: str
    field: str
    width_bits: int


@dataclass(frozen=True)
class Ahead:
    """Bits ahead of the parser's cursor."""

    width_bits: int


@dataclass(frozen=True)
class Arg:
    """A parameter of the enclosing action."""

    index: int
    width_bits: int


@dataclass(frozen=True)
class Op:
    """``+ - * & | ^ |+| |-|`` of two values of one type; ``<< >>`` by a constant or bit<W>."""

    op: str
    left: Value
    right: Value


@dataclass(frozen=True)
class Invert:
    """``~`` or ``-``."""

    op: str
    operand: Value


@dataclass(frozen=True)
class To:
    """A cast: of width or of sign."""

    operand: Value
    width_bits: int
    signed: bool = False


@dataclass(frozen=True)
class Choice:
    """``condition ? then : otherwise``."""

    condition: Truth
    then: Value
    otherwise: Value


@dataclass(frozen=True)
class Compare:
    """``== != < <= > >=``."""

    op: str
    left: Value
    right: Value


@dataclass(frozen=True)
class Both:
    """``&&`` or ``||``."""

    op: str
    left: Truth
    right: Truth


@dataclass(frozen=True)
class Not:
    """``!``."""

    operand: Truth


@dataclass(frozen=True)
class IsValid:
    """Of a header, or of a stack's element."""

    header: str


Value = Union[Num, Ref, Last, Ahead, Arg, Op, Invert, To, Choice]  # noqa: UP007
Truth = Union[Bool, Compare, Both, Not, IsValid]  # noqa: UP007


def type_of(value: Value) -> tuple[int, bool]:
    """(width in bits, signed)."""
    if isinstance(value, Op):
        return type_of(value.left)
    if isinstance(value, Invert):
        return type_of(value.operand)
    if isinstance(value, Choice):
        return type_of(value.then)
    return value.width_bits, getattr(value, "signed", False)


# -- statements --


@dataclass(frozen=True)
class Assign:
    """``target = value``."""

    target: Ref
    value: Value


@dataclass(frozen=True)
class SetValid:
    """setValid or setInvalid."""

    header: str
    valid: bool


@dataclass(frozen=True)
class Copy:
    """``target = value``, headers of one type."""

    target: str
    value: str


@dataclass(frozen=True)
class Shift:
    """push_front(count), or pop_front(-count)."""

    stack: str
    count: int


@dataclass(frozen=True)
class Read:
    """``register.read(target, index)``."""

    target: Ref
    register: str
    index: Value


@dataclass(frozen=True)
class Write:
    """``register.write(index, value)``."""

    register: str
    index: Value
    value: Value


@dataclass(frozen=True)
class Count:
    """``counter.count(index)``."""

    counter: str
    index: Value


@dataclass(frozen=True)
class Hash:
    """``hash(target, algorithm, base, inputs, size)``."""

    target: Ref
    algorithm: str
    base: int
    inputs: tuple[Ref, ...]
    size: int


@dataclass(frozen=True)
class Drop:
    """mark_to_drop."""


@dataclass(frozen=True)
class Truncate:
    """Send at most so many bytes."""

    length_bytes: int


@dataclass(frozen=True)
class Exit:
    """Leave the pipeline; in a pipeline only."""


@dataclass(frozen=True)
class If:
    """A branch."""

    condition: Truth
    then: Block
    otherwise: Block = ()


@dataclass(frozen=True)
class Apply:
    """``hit`` and ``miss``, or ``cases``: blocks by action, as a switch on action_run."""

    table: str
    hit: Block = ()
    miss: Block = ()
    cases: tuple[tuple[str, Block], ...] = ()


@dataclass(frozen=True)
class Extract:
    """Parser: a header, or the next element of a stack."""

    header: str


@dataclass(frozen=True)
class Verify:
    """Parser: stop with an error unless this holds."""

    condition: Truth
    error: str


@dataclass(frozen=True)
class Advance:
    """Parser: skip bytes."""

    count_bytes: int


Stmt = Union[  # noqa: UP007
    Assign, SetValid, Copy, Shift, Read, Write, Count, Hash, Drop, Truncate, Exit, If, Apply,
    Extract, Verify, Advance,
]  # fmt: skip
Block = tuple[Stmt, ...]


# -- declarations --


@dataclass(frozen=True)
class Field:
    """One field."""

    name: str
    width_bits: int
    signed: bool = False


@dataclass(frozen=True)
class Header:
    """An instance of the type ``type``; ``stack_size`` > 0: a stack of so many."""

    name: str
    type: str
    stack_size: int = 0


@dataclass(frozen=True)
class Register:
    """An array of ``size`` values."""

    name: str
    size: int
    width_bits: int


@dataclass(frozen=True)
class Action:
    """``params``: widths in bits."""

    name: str
    params: tuple[int, ...]
    body: Block


@dataclass(frozen=True)
class Call:
    """An action with arguments."""

    action: str
    args: tuple[int, ...] = ()


@dataclass(frozen=True)
class Entry:
    """``key``: a (value, mask) for each field; lpm: (value, prefix length); range: (low, high)."""

    key: tuple[tuple[int, int], ...]
    call: Call
    priority: int


@dataclass(frozen=True)
class Key:
    """A field and how it is matched; of ``header`` alone (field "$valid$"): its validity."""

    field: Ref
    kind: str


@dataclass(frozen=True)
class Table:
    """A table; ``default_const``: p4c folds one without key."""

    name: str
    keys: tuple[Key, ...]
    actions: tuple[str, ...]
    default: Call
    entries: tuple[Entry, ...] = ()
    counted: bool = False
    default_const: bool = False


@dataclass(frozen=True)
class Case:
    """A transition: a (value, mask) for each key; none: default. ``state`` "": accept."""

    values: tuple[tuple[int, int], ...]
    state: str


@dataclass(frozen=True)
class State:
    """A parser state."""

    name: str
    body: Block
    keys: tuple[Value, ...] = ()
    cases: tuple[Case, ...] = (Case((), ""),)


@dataclass(frozen=True)
class Checksum:
    """csum16 of ``inputs`` in ``target``."""

    target: Ref
    inputs: tuple[Ref, ...]
    condition: Truth = Bool(True)
    verify: bool = False
    update: bool = False


@dataclass(frozen=True)
class Group:
    """A multicast group: (port, rid)."""

    number: int
    copies: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Program:
    """All of it. The parser begins in its first state."""

    types: tuple[tuple[str, tuple[Field, ...]], ...]
    headers: tuple[Header, ...]
    meta: tuple[Field, ...]
    states: tuple[State, ...]
    ingress: Block
    egress: Block
    deparse: tuple[str, ...]
    registers: tuple[Register, ...] = ()
    counters: tuple[tuple[str, int], ...] = ()
    actions: tuple[Action, ...] = ()
    tables: tuple[Table, ...] = ()
    checksums: tuple[Checksum, ...] = ()
    groups: tuple[Group, ...] = ()

    def fields(self, header: str) -> tuple[Field, ...]:
        """Of an instance, a stack or a stack's element."""
        if header == META:
            return self.meta
        plain = header.split("[")[0]
        type_ = next(it.type for it in self.headers if it.name == plain)
        return dict(self.types)[type_]

    def refs(self, header: str) -> list[Ref]:
        """Its fields, to use in expressions."""
        return [Ref(header, it.name, it.width_bits, it.signed) for it in self.fields(header)]

    def size_bits(self, header: str) -> int:
        """On the wire."""
        return sum(it.width_bits for it in self.fields(header))

    def action(self, name: str) -> Action:
        """By name."""
        return next(it for it in self.actions if it.name == name)

    def table(self, name: str) -> Table:
        """By name."""
        return next(it for it in self.tables if it.name == name)


Packet = tuple[int, bytes]
"""(ingress port, bytes)"""


@dataclass(frozen=True)
class Trial:
    """A program and the packets that are sent through it, one after another."""

    program: Program
    packets: tuple[Packet, ...]
    seed: int = field(default=0, compare=False)


def walk(node: Any) -> Iterator[Any]:
    """The node and all below it."""
    if isinstance(node, tuple):
        for item in node:
            yield from walk(item)
    elif is_dataclass(node):
        yield node
        for each in fields(node):
            yield from walk(getattr(node, each.name))
