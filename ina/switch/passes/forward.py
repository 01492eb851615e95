"""What a hash is over, without the copies that p4c makes of it first.

p4c assigns each argument of ``hash`` to a variable of its own before it calls it, and copies whole
headers. Taken from where they were, values of an array stand one behind the other, as they did in
the packet, and neither variables nor copies are needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ina.switch.ir.data import STANDARD
from ina.switch.ir.expr import Const, FieldRef
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import Apply, Assign, Block, CopyHeader, Hash, HashInput, If, Stmt
from ina.switch.ir.walk import all_parts, walk
from ina.switch.passes.blocks import change_blocks
from ina.switch.passes.effect_places import Kind, Place, Places, field_of
from ina.switch.passes.effects import effects, read_by_switch


@dataclass
class Copies:
    """What has the same value now."""

    fields: dict[FieldRef, FieldRef | Const] = field(default_factory=dict)
    """By variable."""
    headers: dict[str, str] = field(default_factory=dict)
    """By header: the one that it is a copy of."""

    def copy(self) -> Copies:
        """To go on from on another way."""
        return Copies(dict(self.fields), dict(self.headers))

    def forget(self, written: Places) -> None:
        """Those that are copies no more."""
        for variable, value in list(self.fields.items()):
            both = [variable, value] if isinstance(value, FieldRef) else [variable]
            if any(field_of(ref) in written for ref in both):
                del self.fields[variable]
        for copy, header in list(self.headers.items()):
            if any(place in written for name in (copy, header) for place in _places(name)):
                del self.headers[copy]


def _places(header: str) -> tuple[Place, ...]:
    """What a copy of a header has of it."""
    return tuple(Place(kind, header) for kind in (Kind.FIELD, Kind.VALID, Kind.WIRE))


def forward_program(program: Program) -> Program:
    """The program with hashes over what their inputs are copies of."""
    if not any(isinstance(node, Hash) for node in _nodes(program)):
        return program
    forwarder = _Forwarder(program)
    program = change_blocks(program, lambda block: forwarder.block(block, Copies()))
    unread = _Unread(
        frozenset(forwarder.fields - _read(program)),
        frozenset(forwarder.headers - _named(program)),
    )
    headers = {name: it for name, it in program.headers.items() if name not in unread.headers}
    program = change_blocks(program, lambda block: _without(block, unread))
    return replace(program, headers=headers)


@dataclass(frozen=True)
class _Unread:
    """What nobody reads any more."""

    fields: frozenset[FieldRef]
    headers: frozenset[str]

    def is_all_of(self, stmt: Stmt) -> bool:
        """Whether the statement makes nothing else."""
        if isinstance(stmt, CopyHeader):
            return stmt.target.index is None and stmt.target.name in self.headers
        return isinstance(stmt, Assign) and stmt.target in self.fields


class _Forwarder:
    def __init__(self, program: Program) -> None:
        self._program = program
        self.fields: set[FieldRef] = set()
        self.headers: set[str] = set()
        """Whose copies hashes were over."""

    def block(self, block: Block, copies: Copies) -> Block:
        """``copies``: what is known before it."""
        known = copies.copy()
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
            on_hit, on_miss = (self.block(it, Copies()) for it in (stmt.on_hit, stmt.on_miss))
            by_action = tuple((action, self.block(it, Copies())) for action, it in stmt.on_action)
            done = replace(stmt, on_hit=on_hit, on_miss=on_miss, on_action=by_action)
        known.forget(effects(self._program, stmt).writes)
        if isinstance(stmt, Assign) and self._is_copy(stmt):
            assert isinstance(stmt.target, FieldRef)
            assert isinstance(stmt.value, (FieldRef, Const))
            value = stmt.value
            known.fields[stmt.target] = (
                known.fields.get(value, value) if isinstance(value, FieldRef) else value
            )
        if isinstance(stmt, CopyHeader) and self._is_plain_copy(stmt):
            known.headers[stmt.target.name] = known.headers.get(stmt.value.name, stmt.value.name)
        return done

    def _is_copy(self, stmt: Assign) -> bool:
        """To a variable: of a field that is like it, or of a constant that it has room for."""
        target, value = stmt.target, stmt.value
        if type(target) is not FieldRef or target.header == STANDARD:
            return False
        if not self._program.headers[target.header].metadata:
            return False
        if isinstance(value, Const):
            return not target.signed and 0 <= value.value < 1 << target.width_bits
        if type(value) is not FieldRef or target == value:
            return False
        return (target.width_bits, target.signed) == (value.width_bits, value.signed)

    def _is_plain_copy(self, stmt: CopyHeader) -> bool:
        """Of one header to another, not of a stack's elements."""
        both = (stmt.target, stmt.value)
        headers = [self._program.headers.get(ref.name) for ref in both if ref.index is None]
        known = [header for header in headers if header and not header.stack]
        return len(known) == len(both) and known[0].type == known[1].type and known[0] != known[1]

    def _input(self, item: HashInput, known: Copies) -> HashInput:
        value = item.value
        if type(value) is FieldRef and value.header in known.headers:
            if item.header != value.header:
                return item  # it is read whether it is there or not
            self.headers.add(value.header)
            header = known.headers[value.header]
            return replace(item, value=replace(value, header=header), header=header)
        if isinstance(value, FieldRef) and value in known.fields:
            self.fields.add(value)
            return replace(item, value=known.fields[value])
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


def _named(program: Program) -> set[str]:
    """Headers that are sent, or that something but a copy to them says the name of."""
    said = Counter(program.deparse)
    said.update(ref.header for refs in program.turns.field_lists.values() for ref in refs)
    for node in (*_nodes(program), *walk(program.tables)):
        said.update(it for it in vars(node).values() if isinstance(it, str))
        if isinstance(node, CopyHeader):
            said[node.target.name] -= 1
    return {name for name, times in said.items() if times > 0}


def _without(block: Block, unread: _Unread) -> Block:
    """The block without what makes these."""
    done: list[Stmt] = []
    for stmt in block:
        if unread.is_all_of(stmt):
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
