"""What usual packets have in common: tests at the beginning of a block that only few fail.

A program looks first whether a packet is sound, and what it does with one that is not takes a few
assignments. Code for the others can test all of that at once, on the packet's bytes, and leave the
rest to the general code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ina.switch.ir.expr import (
    COMPARISONS,
    Binary,
    BoolConst,
    Cast,
    Const,
    Expr,
    FieldRef,
    Select,
    Unary,
    Valid,
)
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import Apply, Assign, Block, Hash, If, Loop, RegisterRead, RegisterWrite
from ina.switch.ir.walk import walk
from ina.switch.passes.effects import effects
from ina.switch.passes.specialise import COMPARE

_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_READABLE = (Const, BoolConst, FieldRef, Valid, Unary, Binary, Select, Cast)
_COMPUTE = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    **COMPARE,
}
_MAX_SHIFT = 64
Known = dict[tuple[str, str], int]
"""Values of unsigned fields, by (header, field)."""


@dataclass(frozen=True)
class Usual:
    """``rest`` does what the block does if every condition holds and every gate is hit."""

    conditions: tuple[Expr, ...]
    known: Known
    """What fields are if the conditions hold, when the block begins."""
    rest: Block
    gates: tuple[str, ...] = ()
    """Tables, by name."""
    given: tuple[Assign, ...] = ()
    """What the actions of the gates do: constants into fields. ``rest`` begins with it."""


FindGate = Callable[[str, tuple[Assign, ...]], "tuple[Assign, ...] | None"]
"""By a table's name and what the gates before it do, what its action does whatever entry is hit:
constants into fields. None: the table cannot be a gate."""


def usual_way(program: Program, block: Block, known: Known, gate: FindGate) -> Usual:
    """The tests that the block begins with whose other way does little.

    ``known``: what fields are when the block begins.
    """
    known = dict(known)
    conditions: list[Expr] = []
    gates: list[str] = []
    given: list[Assign] = []
    while block:
        first = block[0]
        if isinstance(first, Apply) and _leads_on(first):
            done = gate(first.table, tuple(given))
            if done is None:
                break
            gates.append(first.table)
            given += done
            block = (*first.on_hit, *block[1:])
            continue
        if not isinstance(first, If) or not _is_readable(first.condition):
            break
        stays = _does_much(first.then)
        if stays == _does_much(first.otherwise):
            break
        learned, more = {**known, **constants(given)}, []
        for condition in _conjuncts(first.condition, stays):
            folded = fold(condition, learned)
            if isinstance(folded, BoolConst) and folded.value:
                continue
            more.append(folded)
            field = equal_field(folded)
            if field is not None:
                learned[field[0].header, field[0].field] = field[1]
        if any(isinstance(condition, BoolConst) for condition in more):
            break  # no packet goes that way
        if effects(program, *given).disturb(effects(program, *more)):
            break  # it cannot be asked before
        known = {place: value for place, value in learned.items() if place not in constants(given)}
        conditions += more
        block = (*(first.then if stays else first.otherwise), *block[1:])
    rest = (*given, *block)
    return Usual(tuple(conditions), known, rest, tuple(gates), tuple(given))


def constants(given: Iterable[Assign]) -> Known:
    """What unsigned fields are after constants were assigned to them."""
    return {
        (stmt.target.header, stmt.target.field): stmt.value.value % (1 << stmt.target.width_bits)
        for stmt in given
        if isinstance(stmt.target, FieldRef)
        and isinstance(stmt.value, Const)
        and not stmt.target.signed
    }


def equal_field(condition: Expr) -> tuple[FieldRef, int] | None:
    """``field == constant``, which the unsigned field can be, in either order."""
    if not isinstance(condition, Binary) or condition.op != "==":
        return None
    for field, value in (
        (condition.left, condition.right),
        (condition.right, condition.left),
    ):
        if isinstance(field, FieldRef) and isinstance(value, Const) and not field.signed:
            return (field, value.value) if 0 <= value.value < 1 << field.width_bits else None
    return None


def fold(expr: Expr, known: Known) -> Expr:
    """The expression with known fields put in and constants computed."""
    if isinstance(expr, FieldRef) and not expr.signed and (expr.header, expr.field) in known:
        return Const(known[expr.header, expr.field])
    if isinstance(expr, (Unary, Cast)):
        return _fold_unary(replace(expr, operand=fold(expr.operand, known)))
    if isinstance(expr, Select):
        then, otherwise = fold(expr.then, known), fold(expr.otherwise, known)
        return Select(fold(expr.condition, known), then, otherwise)
    if not isinstance(expr, Binary):
        return expr
    left, right = fold(expr.left, known), fold(expr.right, known)
    if isinstance(left, Const) and isinstance(right, Const):
        if expr.op in _COMPUTE:
            result = _COMPUTE[expr.op](left.value, right.value)
            return BoolConst(result) if expr.op in COMPARISONS else Const(int(result))
        if expr.op in ("<<", ">>") and 0 <= right.value < _MAX_SHIFT:
            up = expr.op == "<<"
            return Const(left.value << right.value if up else left.value >> right.value)
    return Binary(expr.op, left, right)


def _fold_unary(expr: Unary | Cast) -> Expr:
    if isinstance(expr, Unary) and expr.op == "not" and isinstance(expr.operand, BoolConst):
        return BoolConst(not expr.operand.value)
    return expr


def _conjuncts(condition: Expr, holds: bool) -> list[Expr]:
    """What is true if the condition is, or is not."""
    if isinstance(condition, Unary) and condition.op == "not":
        return _conjuncts(condition.operand, not holds)
    if isinstance(condition, Binary) and condition.op == ("and" if holds else "or"):
        return [*_conjuncts(condition.left, holds), *_conjuncts(condition.right, holds)]
    if holds:
        return [condition]
    if isinstance(condition, Binary) and condition.op in COMPARISONS:
        left, right = condition.left, condition.right
        for bit, value in ((left, right), (right, left)):
            one = isinstance(bit, FieldRef) and bit.width_bits == 1 and not bit.signed
            if one and condition.op == "==" and value in (Const(0), Const(1)):
                return [Binary("==", bit, Const(int(value == Const(0))))]
        return [Binary(_OPPOSITE[condition.op], left, right)]
    return [Unary("not", condition)]


def _is_readable(condition: Expr) -> bool:
    """Whether it can be evaluated before the block: only fields, no stacks, nothing of actions."""
    return all(isinstance(node, _READABLE) for node in walk(condition))


def _leads_on(table: Apply) -> bool:
    """Whether most is done when it is hit."""
    return not table.on_action and _does_much(table.on_hit) and not _does_much(table.on_miss)


def _does_much(block: Block) -> bool:
    much = (Apply, Hash, Loop, RegisterRead, RegisterWrite)
    return any(isinstance(node, much) for node in walk(block))
