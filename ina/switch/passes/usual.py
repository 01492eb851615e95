"""What usual packets have in common: tests at the beginning of a block that only few fail.

A program looks first whether a packet is sound, and what it does with one that is not takes a few
assignments. Code for the others can test all of that at once, on the packet's bytes, and leave the
rest to the general code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import takewhile

from ina.switch.ir.data import STANDARD
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
    WholeArray,
)
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import (
    Apply,
    Assign,
    Block,
    Hash,
    If,
    Loop,
    RegisterRead,
    RegisterWrite,
    Stmt,
)
from ina.switch.ir.walk import walk
from ina.switch.passes.effect_places import Kind, Place, Places
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
    computed: Block = ()
    """What assigns to variables only, and can be done when the conditions hold, before all else."""
    of_computed: tuple[Expr, ...] = ()
    """Conditions that can be asked behind it."""


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
    computed: Block = ()
    of_computed: list[Expr] = []
    while block:
        hashed = () if computed else _computed(program, block, tuple(given))
        if hashed:
            computed, block = hashed, block[len(hashed) :]
            known = _without(known, effects(program, computed).writes)
        first = block[0]
        if isinstance(first, Apply) and _leads_on(first) and not computed:
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
        changed = effects(program, computed).writes
        known = {place: value for place, value in learned.items() if place not in constants(given)}
        known = _without(known, changed)
        for condition in more:
            is_late = changed.meets(effects(program, condition).reads)
            (of_computed if is_late else conditions).append(condition)
        block = (*(first.then if stays else first.otherwise), *block[1:])
    if computed and not of_computed:  # nothing is asked of it
        computed, block = (), (*computed, *block)
    rest = (*given, *block)
    return Usual(
        tuple(conditions), known, rest, tuple(gates), tuple(given), computed, tuple(of_computed)
    )


def _computed(program: Program, block: Block, given: tuple[Assign, ...]) -> Block:
    """What stands before the block's first branch, if it is a hash and what is made of it, in
    variables only: whether a packet is sound can be asked of that."""
    found = tuple(takewhile(lambda stmt: isinstance(stmt, (Assign, Hash)), block))
    behind = block[len(found) : len(found) + 1]
    has_hash = any(isinstance(stmt, Hash) for stmt in found)
    if not has_hash or not any(isinstance(stmt, If) for stmt in behind):
        return ()
    if not all(_is_computing(program, stmt) for stmt in found):
        return ()
    before, done = effects(program, *given), effects(program, found)
    return () if before.disturb(done) or before.writes.meets(done.writes) else found


def _is_computing(program: Program, stmt: Stmt) -> bool:
    if not isinstance(stmt, (Assign, Hash)) or type(stmt.target) is not FieldRef:
        return False
    parts = [stmt.value] if isinstance(stmt, Assign) else [item.value for item in stmt.inputs]
    is_readable = all(isinstance(it, (*_READABLE, WholeArray)) for it in walk(tuple(parts)))
    header = program.headers[stmt.target.header]
    return is_readable and header.metadata and header.name != STANDARD


def _without(known: Known, changed: Places) -> Known:
    return {at: value for at, value in known.items() if Place(Kind.FIELD, *at) not in changed}


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
