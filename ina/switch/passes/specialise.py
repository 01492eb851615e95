"""A block as it is when some things are known: branches that cannot be taken go.

The main path of the parser fixes which headers are valid and what the fields are that it selected
on. What only other packets do need not be looked at when code is made for that path.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ina.switch.ir.expr import Binary, BoolConst, Const, Expr, FieldRef, Unary, Valid
from ina.switch.ir.stmt import Apply, Block, If, Loop, Stmt

COMPARE = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@dataclass(frozen=True)
class Facts:
    """What holds throughout the block: validity of headers, values of unsigned fields."""

    valid: dict[str, bool]
    fields: dict[tuple[str, str], int]


def specialise(block: Block, facts: Facts) -> Block:
    """The block without the branches that the facts rule out."""
    result: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, If):
            then, otherwise = specialise(stmt.then, facts), specialise(stmt.otherwise, facts)
            condition = known(stmt.condition, facts)
            if isinstance(condition, BoolConst):
                result.extend(then if condition.value else otherwise)
            else:
                result.append(replace(stmt, condition=condition, then=then, otherwise=otherwise))
        elif isinstance(stmt, Apply):
            ways = tuple((action, specialise(way, facts)) for action, way in stmt.on_action)
            hit, miss = specialise(stmt.on_hit, facts), specialise(stmt.on_miss, facts)
            result.append(replace(stmt, on_hit=hit, on_miss=miss, on_action=ways))
        elif isinstance(stmt, Loop):
            result.append(replace(stmt, body=specialise(stmt.body, facts)))
        else:
            result.append(stmt)
    return tuple(result)


def known(expr: Expr, facts: Facts) -> Expr:
    """A Boolean, as far as it is known."""
    if isinstance(expr, Valid) and expr.header in facts.valid:
        return BoolConst(facts.valid[expr.header])
    if isinstance(expr, Unary) and expr.op == "not":
        inner = known(expr.operand, facts)
        return BoolConst(not inner.value) if isinstance(inner, BoolConst) else Unary("not", inner)
    if not isinstance(expr, Binary):
        return expr
    if expr.op in COMPARE:
        left, right = _integer(expr.left, facts), _integer(expr.right, facts)
        if left is None or right is None:
            return expr
        return BoolConst(COMPARE[expr.op](left, right))
    if expr.op in ("and", "or"):
        decides = expr.op == "or"  # the value that one operand is enough for
        left_known, right_known = known(expr.left, facts), known(expr.right, facts)
        for one, other in ((left_known, right_known), (right_known, left_known)):
            if isinstance(one, BoolConst):
                return one if one.value == decides else other
        return Binary(expr.op, left_known, right_known)
    return expr


def _integer(expr: Expr, facts: Facts) -> int | None:
    if isinstance(expr, Const):
        return expr.value
    if isinstance(expr, FieldRef) and not expr.signed:
        return facts.fields.get((expr.header, expr.field))
    return None
