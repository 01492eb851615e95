"""Value ranges: the smallest and the largest integer that an expression can be.

BMv2 computes exactly, with integers of any size. An emitter must know which machine type holds a
value; the range says so.
"""

from __future__ import annotations

from ina.switch.ir.expr import (
    ArrayFieldRef,
    Binary,
    Cast,
    Const,
    Expr,
    FieldRef,
    LocalRef,
    Lookahead,
    ParamRef,
    Select,
    StackFieldRef,
    StackInfo,
    Unary,
)

Range = tuple[int, int]
MAX_SHIFT = 512
"""Larger shifts are as good as this one: every supported value is narrower."""


def unsigned(width_bits: int) -> Range:
    """All values of bit<width>."""
    return 0, (1 << width_bits) - 1


def signed(width_bits: int) -> Range:
    """All values of int<width>."""
    return -(1 << (width_bits - 1)), (1 << (width_bits - 1)) - 1


def range_of(expr: Expr) -> Range:
    """Bounds of an integer expression (Booleans count as 0 and 1)."""
    if isinstance(expr, Const):
        return expr.value, expr.value
    if isinstance(expr, (FieldRef, StackFieldRef, LocalRef, ArrayFieldRef)):
        return signed(expr.width_bits) if expr.signed else unsigned(expr.width_bits)
    if isinstance(expr, (ParamRef, Lookahead)):
        return unsigned(expr.width_bits)
    if isinstance(expr, StackInfo):
        return -1, 255
    if isinstance(expr, Cast):
        return unsigned(expr.width_bits) if expr.kind == "usaturate" else signed(expr.width_bits)
    if isinstance(expr, Select):
        (a, b), (c, d) = range_of(expr.then), range_of(expr.otherwise)
        return min(a, c), max(b, d)
    if isinstance(expr, Unary) and expr.op in ("-", "~"):
        low, high = range_of(expr.operand)
        return (-high, -low) if expr.op == "-" else (-high - 1, -low - 1)
    if isinstance(expr, Binary):
        return _binary(expr.op, range_of(expr.left), range_of(expr.right))
    return 0, 1


def _binary(op: str, left: Range, right: Range) -> Range:
    (a, b), (c, d) = left, right
    if op == "+":
        return a + c, b + d
    if op == "-":
        return a - d, b - c
    if op == "*":
        corners = (a * c, a * d, b * c, b * d)
        return min(corners), max(corners)
    if op == "/":
        return min(a, -b, 0), max(b, -a)
    if op == "%":
        bound = max(abs(c), abs(d), 1) - 1
        return (-bound if a < 0 else 0), min(bound, max(b, -a))
    if op == "<<":
        shift = min(d, MAX_SHIFT)
        return min(a, a << shift), max(b, b << shift)
    if op == ">>":
        shift = min(max(c, 0), MAX_SHIFT)
        return (a if a < 0 else 0), max(b >> shift, -1 if a < 0 else 0)
    if op == "&":
        if a >= 0 and c >= 0:
            return 0, min(b, d)
        if a >= 0 or c >= 0:
            return 0, b if a >= 0 else d
    if op in ("&", "|", "^"):
        bits = max(x.bit_length() for x in (a, b, c, d))
        full = (1 << bits) - 1
        return (0 if a >= 0 and c >= 0 else -full - 1), full
    return 0, 1  # comparisons
