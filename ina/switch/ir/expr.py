"""Expressions. Integers have no width of their own: as in BMv2, arithmetic is exact, and a value is
reduced where it is masked, cast or stored. Booleans and integers are distinct (``b2d``, ``d2b``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union


@dataclass(frozen=True)
class Const:
    """An integer constant, possibly negative."""

    value: int


@dataclass(frozen=True)
class BoolConst:
    """``true`` or ``false``."""

    value: bool


@dataclass(frozen=True)
class FieldRef:
    """A field of a header or metadata instance."""

    header: str
    field: str
    width_bits: int
    signed: bool = False


@dataclass(frozen=True)
class InPacket(FieldRef):
    """What a field of an extracted header was when the packet came; no target of an assignment."""


@dataclass(frozen=True)
class StackFieldRef:
    """A field of a stack's element: ``index`` None is the last extracted one."""

    stack: str
    index: Expr | None
    field: str
    width_bits: int
    signed: bool = False


@dataclass(frozen=True)
class ParamRef:
    """The action's parameter number ``index``."""

    index: int
    width_bits: int


@dataclass(frozen=True)
class LocalRef:
    """A variable of one loop iteration (made by re-rolling); starts at 0."""

    name: str
    width_bits: int
    signed: bool = False


@dataclass(frozen=True)
class ArrayFieldRef:
    """Inside a loop: the header's field number ``first`` + the loop counter."""

    header: str
    first: int
    width_bits: int
    signed: bool = False


@dataclass(frozen=True)
class WholeArray:
    """All fields of a header that lie one behind the other and are alike, one after another: an
    input of a hash (made by :mod:`ina.switch.passes.hashes`)."""

    header: str
    first: int
    """Number of the first of the fields."""
    count: int
    width_bits: int
    """Of each."""


@dataclass(frozen=True)
class Lookahead:
    """Bits ahead of the parser's cursor; too few of them is the parser error PacketTooShort."""

    offset_bits: int
    width_bits: int


@dataclass(frozen=True)
class Valid:
    """Is the header valid (Boolean)."""

    header: str


@dataclass(frozen=True)
class StackValid:
    """Is the element of the stack valid (Boolean)."""

    stack: str
    index: Expr


@dataclass(frozen=True)
class StackInfo:
    """``what`` is ``last_index`` or ``size`` (elements extracted so far)."""

    stack: str
    what: str


@dataclass(frozen=True)
class Unary:
    """``op``: ``-`` ``~`` on integers, ``not`` on Booleans, ``d2b`` and ``b2d`` between them."""

    op: str
    operand: Expr


@dataclass(frozen=True)
class Binary:
    """Integers: ``+ - * / % << >> & | ^``, comparisons; Booleans: ``and or == !=``."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Select:
    """``condition ? then : otherwise``."""

    condition: Expr
    then: Expr
    otherwise: Expr


@dataclass(frozen=True)
class Cast:
    """``kind``: ``wrap`` (two's complement, signed), ``saturate`` (signed), ``usaturate``."""

    kind: str
    operand: Expr
    width_bits: int


Expr = Union[  # noqa: UP007 (a forward reference needs Union here)
    Const,
    BoolConst,
    FieldRef,
    StackFieldRef,
    ParamRef,
    LocalRef,
    ArrayFieldRef,
    WholeArray,
    Lookahead,
    Valid,
    StackValid,
    StackInfo,
    Unary,
    Binary,
    Select,
    Cast,
]

LValue = Union[FieldRef, StackFieldRef, LocalRef, ArrayFieldRef]  # noqa: UP007

COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^"})


def is_bool(expr: Expr) -> bool:
    """Whether the expression is Boolean."""
    if isinstance(expr, (BoolConst, Valid, StackValid)):
        return True
    if isinstance(expr, Unary):
        return expr.op in ("not", "d2b")
    if isinstance(expr, Binary):
        return expr.op in COMPARISONS or expr.op in ("and", "or")
    if isinstance(expr, Select):
        return is_bool(expr.then)
    return False
