"""What each kind of statement and expression reads and changes; a new kind needs a rule here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ina.switch.errors import UnlistedKindError
from ina.switch.ir.data import STANDARD
from ina.switch.ir.expr import (
    ArrayFieldRef,
    Binary,
    BoolConst,
    Cast,
    Const,
    FieldRef,
    InPacket,
    LocalRef,
    Lookahead,
    ParamRef,
    Select,
    StackFieldRef,
    StackInfo,
    StackValid,
    Unary,
    Valid,
    WholeArray,
)
from ina.switch.ir.program import Checksum, Program
from ina.switch.ir.stmt import (
    Advance,
    Apply,
    Assign,
    Block,
    CopyHeader,
    CopyStack,
    Count,
    Exit,
    Extract,
    Hash,
    HashInput,
    HeaderRef,
    If,
    Loop,
    RegisterRead,
    RegisterRef,
    RegisterWrite,
    SetValid,
    ShiftStack,
    Truncate,
    Verify,
)
from ina.switch.ir.walk import walk
from ina.switch.passes.effect_places import Effects, Kind, Place, Places, field_of


@dataclass
class Told:
    """What has been said of some code so far. Rules say more, one place at a time."""

    program: Program
    iterations: int = 1
    """Of the loop that the code stands in; 0: what loops walk is told as ELEMENT and MEMBER."""
    without: str = ""
    """A table whose actions are left out."""
    arrays_apart: bool = False
    """Whether what is over a whole array is told as that, not as all of its fields."""
    reads: set[Place] = field(default_factory=set)
    writes: set[Place] = field(default_factory=set)
    sets: set[Place] = field(default_factory=set)
    leaves: bool = False

    def done(self) -> Effects:
        """All of it."""
        reads, writes, sets = (Places(frozenset(it)) for it in (self.reads, self.writes, self.sets))
        return Effects(reads, writes, sets, self.leaves)

    def all(self, nodes: tuple[Any, ...]) -> None:
        """One after another."""
        for node in nodes:
            if isinstance(node, tuple):
                self.all(node)
            else:
                self.one(node)

    def one(self, node: Any) -> None:
        """A statement, expression or checksum."""
        rule = RULES.get(type(node))
        if rule is None:
            raise UnlistedKindError(type(node).__name__)
        rule(self, node)

    def either(self, ways: tuple[Block, ...]) -> None:
        """Exactly one of them is gone."""
        told = [Told(self.program, self.iterations, self.without, self.arrays_apart) for _ in ways]
        for each, way in zip(told, ways, strict=True):
            each.all(way)
            self.reads |= each.reads
            self.writes |= each.writes
            self.leaves |= each.leaves
        self.sets |= set.intersection(*(each.sets for each in told))

    def until(self, block: Block, table: str) -> bool:
        """What is done before the table is looked up; whether it is in the block."""
        for stmt in block:
            if not any(isinstance(node, Apply) and node.table == table for node in walk(stmt)):
                self.one(stmt)
                continue
            ways: tuple[Block, ...]
            if isinstance(stmt, If):
                self.one(stmt.condition)
                ways = (stmt.then, stmt.otherwise)
            elif isinstance(stmt, Apply):
                self.keys(stmt.table)
                if stmt.table == table:
                    return True
                self.actions(stmt.table)
                ways = (stmt.on_hit, stmt.on_miss, *(way for _, way in stmt.on_action))
            else:
                self.one(stmt)
                return True
            return any(
                self.until(way, table)
                for way in ways
                if any(isinstance(node, Apply) and node.table == table for node in walk(way))
            )
        return False

    # -- what rules say --

    def read(self, kind: Kind, name: str = "", field: str = "") -> None:
        """This may be read."""
        self.reads.add(Place(kind, name, field))

    def write(self, kind: Kind, name: str = "", field: str = "") -> None:
        """This may change."""
        self.writes.add(Place(kind, name, field))

    def target(self, ref: Any) -> None:
        """This is assigned to."""
        for place in self.places(ref):
            self.writes.add(place)
            if isinstance(ref, (FieldRef, LocalRef)):
                self.sets.add(place)
        if isinstance(ref, StackFieldRef):
            self._stack_index(ref)

    def value(self, ref: Any) -> None:
        """This field or variable is read."""
        self.reads.update(self.places(ref))
        if isinstance(ref, StackFieldRef):
            self._stack_index(ref)

    def _stack_index(self, ref: StackFieldRef) -> None:
        if ref.index is None:
            self.read(Kind.FILL, ref.stack)
        else:
            self.one(ref.index)

    def places(self, ref: Any) -> Iterator[Place]:
        """What a reference may stand for."""
        if isinstance(ref, LocalRef):
            yield Place(Kind.LOCAL, ref.name)
        elif isinstance(ref, StackFieldRef):
            for member in self.program.stacks[ref.stack].members:
                yield Place(Kind.FIELD, member, ref.field)
        elif isinstance(ref, ArrayFieldRef) and not self.iterations:
            yield Place(Kind.ELEMENT, ref.header)
        elif isinstance(ref, ArrayFieldRef):
            fields = self.program.headers[ref.header].type.fields
            for each in fields[ref.first : ref.first + self.iterations]:
                yield field_of(ref, each.name)
        else:
            yield field_of(ref)

    def headers(self, ref: HeaderRef) -> tuple[str, ...]:
        """The headers that a reference may stand for; the index is read."""
        if ref.index is None:
            return (ref.name,)
        self.one(ref.index)
        return self.program.stacks[ref.name].members

    def registers(self, ref: RegisterRef) -> tuple[tuple[Kind, str], ...]:
        """The registers that a reference may stand for."""
        if ref.array and not self.iterations:
            return ((Kind.MEMBER, ref.name),)
        return tuple((Kind.REGISTER, name) for name in ref.array or (ref.name,))

    def inputs(self, inputs: tuple[HashInput, ...]) -> None:
        """What a hash or checksum is over: nothing of headers that are not there."""
        for item in inputs:
            self.one(item.value)
            if item.payload:
                self.read(Kind.CURSOR)
            if item.header:
                self.read(Kind.VALID, item.header)

    def keys(self, name: str) -> None:
        """What a lookup reads: a field of an invalid header is looked up as 0."""
        table = self.program.table(name)
        assert table is not None
        for key in table.keys:
            self.one(key.value)
            for node in walk(key.value):
                if isinstance(node, FieldRef) and not self.program.headers[node.header].metadata:
                    self.read(Kind.VALID, node.header)

    def actions(self, name: str) -> None:
        """What a table may do, whatever entry is found."""
        table = self.program.table(name)
        assert table is not None
        if table.has_direct_counter:
            self.write(Kind.COUNTER, table.direct_counter or table.name)
        if name != self.without:
            self.either(tuple(action.body for action in self.program.possible_actions(table)))


# -- expressions --


def _nothing(told: Told, node: Any) -> None:
    pass


def _in_packet(told: Told, node: InPacket) -> None:
    told.read(Kind.WIRE, node.header)


def _lookahead(told: Told, node: Lookahead) -> None:
    told.read(Kind.CURSOR)


def _whole_array(told: Told, node: WholeArray) -> None:
    if told.arrays_apart:
        told.read(Kind.ARRAY, node.header)
        return
    fields = told.program.headers[node.header].type.fields
    for each in fields[node.first : node.first + node.count]:
        told.read(Kind.FIELD, node.header, each.name)


def _valid(told: Told, node: Valid) -> None:
    told.read(Kind.VALID, node.header)


def _stack_valid(told: Told, node: StackValid) -> None:
    told.one(node.index)
    for member in told.program.stacks[node.stack].members:
        told.read(Kind.VALID, member)


def _stack_info(told: Told, node: StackInfo) -> None:
    told.read(Kind.FILL, node.stack)


def _operand(told: Told, node: Unary | Cast) -> None:
    told.one(node.operand)


def _binary(told: Told, node: Binary) -> None:
    told.all((node.left, node.right))


def _select(told: Told, node: Select) -> None:
    told.all((node.condition, node.then, node.otherwise))


# -- statements --


def _assign(told: Told, node: Assign) -> None:
    told.one(node.value)
    told.target(node.target)


def _copy_header(told: Told, node: CopyHeader) -> None:
    for name in told.headers(node.value):
        for kind in (Kind.FIELD, Kind.VALID, Kind.WIRE):
            told.read(kind, name)
    for name in told.headers(node.target):
        for kind in (Kind.FIELD, Kind.VALID, Kind.WIRE):
            told.write(kind, name)


def _set_valid(told: Told, node: SetValid) -> None:
    for name in told.headers(node.header):
        told.read(Kind.VALID, name)
        told.write(Kind.VALID, name)
        if node.valid:
            told.write(Kind.FIELD, name)
            told.write(Kind.WIRE, name)
    told.write(Kind.LENGTH)


def _copy_stack(told: Told, node: CopyStack) -> None:
    told.read(Kind.FILL, node.value)
    told.write(Kind.FILL, node.target)
    for name in told.program.stacks[node.value].members:
        for kind in (Kind.FIELD, Kind.VALID, Kind.WIRE):
            told.read(kind, name)
    for name in told.program.stacks[node.target].members:
        for kind in (Kind.FIELD, Kind.VALID, Kind.WIRE):
            told.write(kind, name)


def _shift_stack(told: Told, node: ShiftStack) -> None:
    _copy_stack(told, CopyStack(node.stack, node.stack))


def _register_read(told: Told, node: RegisterRead) -> None:
    told.one(node.index)
    for kind, name in told.registers(node.register):
        told.read(kind, name)
    told.target(node.target)


def _register_write(told: Told, node: RegisterWrite) -> None:
    told.all((node.index, node.value))
    for kind, name in told.registers(node.register):
        told.write(kind, name)


def _count(told: Told, node: Count) -> None:
    told.one(node.index)
    told.write(Kind.COUNTER, node.counter)


def _hash(told: Told, node: Hash) -> None:
    told.inputs(node.inputs)
    told.all((node.base, node.size))
    told.target(node.target)


def _truncate(told: Told, node: Truncate) -> None:
    told.one(node.length_bytes)
    told.write(Kind.TRUNCATION)


def _exit(told: Told, node: Exit) -> None:
    told.leaves = True


def _if(told: Told, node: If) -> None:
    told.one(node.condition)
    told.either((node.then, node.otherwise))


def _apply(told: Told, node: Apply) -> None:
    told.keys(node.table)
    told.actions(node.table)
    for way in (node.on_hit, node.on_miss, *(way for _, way in node.on_action)):
        told.either((way, ()))


def _loop(told: Told, node: Loop) -> None:
    iterations = told.iterations and node.count
    inside = Told(told.program, iterations, told.without, told.arrays_apart)
    inside.all(node.body)
    told.reads |= {place for place in inside.reads if place.kind is not Kind.LOCAL}
    told.writes |= {place for place in inside.writes if place.kind is not Kind.LOCAL}
    told.leaves |= inside.leaves


def _extract(told: Told, node: Extract) -> None:
    names: tuple[str, ...] = (node.name,)
    told.read(Kind.CURSOR)
    told.write(Kind.CURSOR)
    if node.stack:
        names = told.program.stacks[node.name].members
        told.read(Kind.FILL, node.name)
        told.write(Kind.FILL, node.name)
    for name in names:
        for kind in (Kind.FIELD, Kind.VALID, Kind.WIRE):
            told.write(kind, name)


def _verify(told: Told, node: Verify) -> None:
    told.all((node.condition, node.error))
    told.leaves = True


def _advance(told: Told, node: Advance) -> None:
    told.one(node.bits)
    told.read(Kind.CURSOR)
    told.write(Kind.CURSOR)


def _checksum(told: Told, node: Checksum) -> None:
    """Nothing is done with one that would stand in an invalid header."""
    told.inputs(node.inputs)
    if node.condition is not None:
        told.one(node.condition)
    if not told.program.headers[node.target.header].metadata:
        told.read(Kind.VALID, node.target.header)
    if node.verify:
        told.value(node.target)
        told.write(Kind.FIELD, STANDARD, "checksum_error")
    if node.update:
        told.writes.add(field_of(node.target))


RULES: dict[type, Callable[[Told, Any], None]] = {
    Const: _nothing,
    BoolConst: _nothing,
    ParamRef: _nothing,
    FieldRef: Told.value,
    StackFieldRef: Told.value,
    LocalRef: Told.value,
    ArrayFieldRef: Told.value,
    InPacket: _in_packet,
    WholeArray: _whole_array,
    Lookahead: _lookahead,
    Valid: _valid,
    StackValid: _stack_valid,
    StackInfo: _stack_info,
    Unary: _operand,
    Cast: _operand,
    Binary: _binary,
    Select: _select,
    Assign: _assign,
    CopyHeader: _copy_header,
    SetValid: _set_valid,
    CopyStack: _copy_stack,
    ShiftStack: _shift_stack,
    RegisterRead: _register_read,
    RegisterWrite: _register_write,
    Count: _count,
    Hash: _hash,
    Truncate: _truncate,
    Exit: _exit,
    If: _if,
    Apply: _apply,
    Loop: _loop,
    Extract: _extract,
    Verify: _verify,
    Advance: _advance,
    Checksum: _checksum,
}
"""By kind of statement or expression. Checksums: what is done with them, as their flags say."""
