"""Expressions of BMv2 JSON as Python functions of a packet's state: exact integers, Booleans."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from fuzz.programs.packet_state import PacketState, UndefinedError

Json = dict[str, Any]
Expression = Callable[[PacketState], Any]
"""An int or a bool."""

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "<<": lambda a, b: a << min(b, 512),
    ">>": lambda a, b: a >> min(b, 512), "==": operator.eq, "!=": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b,
}  # fmt: skip


def _wrap(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def _saturate(value: int, width: int) -> int:
    return max(-(1 << (width - 1)), min(value, (1 << (width - 1)) - 1))


def _usaturate(value: int, width: int) -> int:
    return max(0, min(value, (1 << width) - 1))


_CASTS = {"two_comp_mod": _wrap, "sat_cast": _saturate, "usat_cast": _usaturate}


def compiled(node: Json) -> Expression:
    """Any right-hand side."""
    if "op" in node:
        return _operation(node)
    kind, value = node["type"], node["value"]
    if kind == "expression":
        return compiled(value)
    if kind == "hexstr":
        number = int(value, 16)
        return lambda _: number
    if kind == "bool":
        truth = bool(value)
        return lambda _: truth
    if kind == "field":
        return field(value[0], value[1])
    if kind in ("runtime_data", "local"):
        return lambda s: s.args[value]
    if kind == "lookahead":
        offset, width = value
        return lambda s: s.ahead(offset, width)
    if kind == "stack_field":
        stack, name = value
        return lambda s: s.get(s.last(stack), name)
    raise NotImplementedError(f"operand {kind!r}")


def field(header: Any, name: str) -> Expression:
    """A field; ``$valid$`` is 0 or 1."""
    if name == "$valid$":
        return lambda s: int(header in s.valid)
    return lambda s: s.get(header, name)


def _operation(node: Json) -> Expression:
    op = node["op"]
    right = compiled(node["right"])
    if op == "?":
        condition, then = compiled(node["cond"]), compiled(node["left"])
        return lambda s: then(s) if condition(s) else right(s)
    if op == "not":
        return lambda s: not right(s)
    if op == "d2b":
        return lambda s: right(s) != 0
    if op == "b2d":
        return lambda s: int(right(s))
    if node.get("left") is None:
        return (lambda s: ~right(s)) if op == "~" else (lambda s: -right(s))
    left = compiled(node["left"])
    if op == "and":
        return lambda s: left(s) and right(s)
    if op == "or":
        return lambda s: left(s) or right(s)
    if op in _CASTS:
        cast = _CASTS[op]
        return lambda s: cast(left(s), right(s))
    if op in _OPERATORS:
        function = _OPERATORS[op]
        return lambda s: function(left(s), right(s))
    raise NotImplementedError(f"operator {op!r}")


__all__ = ["Expression", "UndefinedError", "compiled", "field"]
