"""Indices of registers as what they are: not by the names of fields that they were copied to.

p4c gives each use of an expression a field of its own (``tmp = (bit<32>)hdr.h.slot``), so that two
uses of one element look like those of two.
"""

from __future__ import annotations

from dataclasses import replace

from ina.switch.ir.expr import Expr, FieldRef
from ina.switch.ir.program import Program
from ina.switch.ir.ranges import range_of, unsigned
from ina.switch.ir.stmt import Apply, Assign, Block, If, RegisterRead, RegisterWrite, Stmt
from ina.switch.passes.effects import effects

_Known = dict[FieldRef, Expr]
"""Fields that are as these expressions would be now."""


def with_plain_indices(program: Program, block: Block, known: _Known | None = None) -> Block:
    """The same, where an index that is a copy is what was copied, as long as that has not changed.

    ``known``: of what came before.
    """
    known = {} if known is None else dict(known)
    result: list[Stmt] = []
    for stmt in block:
        result.append(_plain(program, stmt, known))
        _forget(program, stmt, known)
        if isinstance(stmt, Assign) and isinstance(stmt.target, FieldRef):
            _learn(program, stmt.target, stmt.value, known)
    return tuple(result)


def _plain(program: Program, stmt: Stmt, known: _Known) -> Stmt:
    if isinstance(stmt, (RegisterRead, RegisterWrite)) and isinstance(stmt.index, FieldRef):
        return replace(stmt, index=known.get(stmt.index, stmt.index))
    if isinstance(stmt, If):
        then = with_plain_indices(program, stmt.then, known)
        return replace(
            stmt, then=then, otherwise=with_plain_indices(program, stmt.otherwise, known)
        )
    if isinstance(stmt, Apply):
        left = dict(known)
        _forget(program, replace(stmt, on_hit=(), on_miss=(), on_action=()), left)
        # What stands behind an action comes before what stands behind hit or miss.
        ways = tuple((it, with_plain_indices(program, way, left)) for it, way in stmt.on_action)
        for _, way in stmt.on_action:
            _forget(program, way, left)
        hit = with_plain_indices(program, stmt.on_hit, left)
        miss = with_plain_indices(program, stmt.on_miss, left)
        return replace(stmt, on_hit=hit, on_miss=miss, on_action=ways)
    return stmt


def _forget(program: Program, part: Stmt | Block, known: _Known) -> None:
    """What it may change, and what was made of that."""
    writes = effects(program, part).writes
    for target, value in list(known.items()):
        if writes.meets(effects(program, target, value).reads):
            del known[target]


def _learn(program: Program, target: FieldRef, value: Expr, known: _Known) -> None:
    if isinstance(value, FieldRef):
        value = known.get(value, value)
    low, high = range_of(value)
    least, most = unsigned(target.width_bits)
    fits = least <= low and high <= most and not target.signed
    if fits and not effects(program, target).reads.meets(effects(program, value).reads):
        known[target] = value
