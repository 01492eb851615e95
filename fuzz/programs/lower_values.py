"""Expressions as p4c writes them into BMv2 JSON."""

from __future__ import annotations

from typing import Any

from fuzz.programs.model import (
    Ahead,
    Arg,
    Bool,
    Both,
    Choice,
    Compare,
    Invert,
    IsValid,
    Last,
    Not,
    Num,
    Ref,
    To,
    Truth,
    Value,
    type_of,
)

Json = dict[str, Any]


def hexa(value: int, width_bits: int = 8) -> str:
    """A hexstr of whole bytes, with its sign."""
    digits = f"{abs(value):0{(width_bits + 7) // 8 * 2}x}"
    return f"{'-' if value < 0 else ''}0x{digits}"


def hexstr(value: int, width_bits: int = 8) -> Json:
    """A constant."""
    return {"type": "hexstr", "value": hexa(value, width_bits)}


def expression(op: str, left: Json | None, right: Json, **more: Json) -> Json:
    """An operation."""
    return {"type": "expression", "value": {"op": op, "left": left, "right": right, **more}}


def field_json(ref: Ref) -> Json:
    """A field."""
    return {"type": "field", "value": [ref.header, ref.field]}


def value_json(value: Value) -> Json:
    """An expression of bit<W> or int<W>, masked as p4c does: BMv2 computes with integers."""
    width, signed = type_of(value)
    if isinstance(value, Num):
        return hexstr(value.value, width)
    if isinstance(value, Ref):
        return field_json(value)
    if isinstance(value, Last):
        return {"type": "stack_field", "value": [value.stack, value.field]}
    if isinstance(value, Ahead):
        return {"type": "lookahead", "value": [0, width]}
    if isinstance(value, Arg):
        return {"type": "local", "value": value.index}
    if isinstance(value, Choice):
        then, otherwise = value_json(value.then), value_json(value.otherwise)
        return expression("?", then, otherwise, cond=truth_json(value.condition))
    if isinstance(value, Invert):
        return _wrapped(expression(value.op, None, value_json(value.operand)), width, signed)
    if isinstance(value, To):
        inner, was_signed = type_of(value.operand)
        if signed == was_signed and width >= inner:
            return value_json(value.operand)
        return _wrapped(value_json(value.operand), width, signed)
    left, right = value_json(value.left), value_json(value.right)
    if value.op in ("|+|", "|-|"):
        cast = "sat_cast" if signed else "usat_cast"
        return expression(cast, expression(value.op[1], left, right), hexstr(width))
    found = expression(value.op, left, right)
    return _wrapped(found, width, signed) if value.op in ("+", "-", "*", "<<") else found


def _wrapped(inner: Json, width: int, signed: bool) -> Json:
    if signed:
        return expression("two_comp_mod", inner, hexstr(width))
    return expression("&", inner, hexstr((1 << width) - 1, width))


def truth_json(truth: Truth) -> Json:
    """A Boolean expression."""
    if isinstance(truth, Bool):
        return {"type": "expression", "value": {"type": "bool", "value": truth.value}}
    if isinstance(truth, IsValid):
        return expression("d2b", None, {"type": "field", "value": [truth.header, "$valid$"]})
    if isinstance(truth, Not):
        return expression("not", None, truth_json(truth.operand))
    if isinstance(truth, Both):
        op = {"&&": "and", "||": "or"}[truth.op]
        return expression(op, truth_json(truth.left), truth_json(truth.right))
    assert isinstance(truth, Compare)
    return expression(truth.op, value_json(truth.left), value_json(truth.right))
