"""What a hash is over, without the copies that p4c makes of it first.

p4c assigns each argument of ``hash`` to a variable of its own before it calls it. Taken from where
they were, values of an array stand one behind the other, as they did in the packet, and the
variables are not needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ina.switch.ir.data import STANDARD
from ina.switch.ir.expr import FieldRef
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import Apply, Assign, Block, Hash, HashInput, If, Stmt
from ina.switch.ir.walk import all_parts, walk
from ina.switch.passes.blocks import change_blocks
from ina.switch.passes.effect_places import field_of
from ina.switch.passes.effects import effects, read_by_switch

Copies = dict[FieldRef, FieldRef]
"""By variable: the field that has the same value now."""


def forward_program(program: Program) -> Program:
    """The program with hashes over what their inputs are copies of."""
    if not any(isinstance(node, Hash) for node in _nodes(program)):
        return program
    forwarder = _Forwarder(program)
    program = change_blocks(program, lambda block: forwarder.block(block, {}))
    unread = forwarder.forwarded - _read(program)
    return change_blocks(program, lambda block: _without(block, unread))


class _Forwarder:
    def __init__(self, program: Program) -> None:
        self._program = program
        self.forwarded: set[FieldRef] = set()

    def block(self, block: Block, copies: Copies) -> Block:
        """``copies``: what is known before it."""
        known = dict(copies)
        return tuple(self._stmt(stmt, known) for stmt in block)

    def _stmt(self, stmt: Stmt, known: Copies) -> Stmt:
        """``known`` is then what is known behind it."""
        done = stmt
        if isinstance(stmt, Hash):
            done = replace(stmt, inputs=tuple(self._input(it, known) for it in stmt.inputs))
        elif isinstance(stmt, If):
            then, otherwise = (self.block(it, known) for it in (stmt.then, stmt.otherwise))
            done = replace(stmt, then=then, otherwise=otherwise)
        elif isinstance(stmt, Apply):  # its actions may have changed anything
            on_hit, on_miss = self.block(stmt.on_hit, {}), self.block(stmt.on_miss, {})
            by_action = tuple((action, self.block(it, {})) for action, it in stmt.on_action)
            done = replace(stmt, on_hit=on_hit, on_miss=on_miss, on_action=by_action)
        written = effects(self._program, stmt).writes
        for variable, field in list(known.items()):
            if field_of(variable) in written or field_of(field) in written:
                del known[variable]
        if isinstance(stmt, Assign) and self._is_copy(stmt):
            assert isinstance(stmt.target, FieldRef)
            assert isinstance(stmt.value, FieldRef)
            known[stmt.target] = known.get(stmt.value, stmt.value)
        return done

    def _is_copy(self, stmt: Assign) -> bool:
        target, value = stmt.target, stmt.value
        if not (type(target) is FieldRef and type(value) is FieldRef):
            return False
        is_variable = self._program.headers[target.header].metadata and target.header != STANDARD
        same = (target.width_bits, target.signed) == (value.width_bits, value.signed)
        return is_variable and same and target != value

    def _input(self, item: HashInput, known: Copies) -> HashInput:
        if isinstance(item.value, FieldRef) and item.value in known:
            self.forwarded.add(item.value)
            return replace(item, value=known[item.value])
        return item


def _nodes(program: Program) -> Iterator[Any]:
    yield from walk(tuple(all_parts(program)))


def _read(program: Program) -> set[FieldRef]:
    """Fields that somebody reads."""
    met: Counter[FieldRef] = Counter()
    for node in _nodes(program):
        if type(node) is FieldRef:
            met[node] += 1
        elif isinstance(node, Assign) and type(node.target) is FieldRef:
            met[node.target] -= 1
    asked = read_by_switch(program)
    return {field for field, times in met.items() if times > 0 or field_of(field) in asked}


def _without(block: Block, unread: set[FieldRef]) -> Block:
    """The block without what is assigned to these."""
    done: list[Stmt] = []
    for stmt in block:
        if isinstance(stmt, Assign) and stmt.target in unread:
            continue
        if isinstance(stmt, If):
            then, otherwise = (_without(it, unread) for it in (stmt.then, stmt.otherwise))
            stmt = replace(stmt, then=then, otherwise=otherwise)
        elif isinstance(stmt, Apply):
            on_hit, on_miss = _without(stmt.on_hit, unread), _without(stmt.on_miss, unread)
            by_action = tuple((action, _without(it, unread)) for action, it in stmt.on_action)
            stmt = replace(stmt, on_hit=on_hit, on_miss=on_miss, on_action=by_action)
        done.append(stmt)
    return tuple(done)
