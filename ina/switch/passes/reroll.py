"""Runs of alike statements over numbered fields and registers become loops.

A P4 program that sums 256 values is 256 copies of the same few statements. Here such a run becomes
one :class:`~ina.switch.ir.stmt.Loop`, so that an emitter can write a loop that vectorises. What may
differ from copy to copy: the field (consecutive fields of a header that form an array), the
register (which then form an array, too), and scratch metadata that nothing else uses (then a
variable of the iteration). Anything that would make one iteration depend on another leaves the run
as it is.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, is_dataclass, replace
from typing import Any

from ina.switch.ir.data import field_arrays
from ina.switch.ir.expr import ArrayFieldRef, FieldRef, LocalRef
from ina.switch.ir.program import Program
from ina.switch.ir.source import Source
from ina.switch.ir.stmt import Apply, Block, If, Loop, RegisterRef, Stmt
from ina.switch.ir.walk import all_parts, walk
from ina.switch.passes.blocks import change_blocks
from ina.switch.passes.effect_places import OWN, Effects, Kind, field_of
from ina.switch.passes.effects import effects, is_invariant, of_iteration, read_by_switch

MIN_COUNT = 8
MAX_PERIOD = 12
"""Statements in one iteration."""


def reroll_program(program: Program) -> Program:
    """The same program with loops where it had been unrolled."""
    return change_blocks(program, _Roller(program).block)


class _Roller:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._uses = Counter(n for n in walk(tuple(all_parts(program))) if isinstance(n, FieldRef))
        self._read_by_switch = read_by_switch(program)
        self._shapes: dict[Any, int] = {}
        self._array_of: dict[str, tuple[str, ...]] = {}
        self._loops = 0
        self._registers = {register.name: register for register in program.registers}
        self._position = {
            header.name: {field.name: number for number, field in enumerate(header.type.fields)}
            for header in program.headers.values()
            if not header.metadata and not header.stack
        }

    def block(self, block: Block) -> Block:
        stmts = [self._inside(stmt) for stmt in block]
        if len(stmts) < MIN_COUNT:
            return tuple(stmts)
        leaves: list[list[Any]] = []
        shapes: list[int] = []
        for stmt in stmts:
            own: list[Any] = []
            shape = _shape(stmt, own)
            shapes.append(self._shapes.setdefault(shape, len(self._shapes)))
            leaves.append(own)
        alike = {period: _alike(shapes, period) for period in range(1, MAX_PERIOD + 1)}
        result: list[Stmt] = []
        at = 0
        while at < len(stmts):
            loop, taken = self._loop_at(stmts, leaves, alike, at)
            result.extend(loop or (stmts[at],))
            at += taken or 1
        return tuple(result)

    def _inside(self, stmt: Stmt) -> Stmt:
        if isinstance(stmt, If):
            return replace(stmt, then=self.block(stmt.then), otherwise=self.block(stmt.otherwise))
        if isinstance(stmt, Apply):
            return replace(
                stmt,
                on_hit=self.block(stmt.on_hit),
                on_miss=self.block(stmt.on_miss),
                on_action=tuple((index, self.block(way)) for index, way in stmt.on_action),
            )
        return stmt

    def _loop_at(
        self, stmts: list[Stmt], leaves: list[list[Any]], alike: dict[int, list[int]], at: int
    ) -> tuple[Block, int]:
        for period in range(1, MAX_PERIOD + 1):
            count = alike[period][at] // period + 1
            if count < MIN_COUNT:
                continue
            rows = [
                [leaf for own in leaves[at + k * period : at + (k + 1) * period] for leaf in own]
                for k in range(count)
            ]
            chosen = self._replacements(rows, tuple(stmts[at : at + period]))
            if chosen is None:
                continue
            new_leaves, count = chosen
            pending = iter(new_leaves)
            body = tuple(_rebuild(stmt, pending) for stmt in stmts[at : at + period])
            if not _is_free(self._program, body):
                continue
            return self._unswitch(count, body, getattr(stmts[at], "source")), count * period  # noqa: B009
        return (), 0

    def _replacements(self, rows: list[list[Any]], body: Block) -> tuple[list[Any], int] | None:
        """What stands in the loop's body for each leaf, and how many rows fit; None: no loop."""
        columns = list(zip(*rows, strict=True))
        count = min((self._fitting(column) for column in columns), default=0)
        if count < MIN_COUNT:
            return None
        columns = [column[:count] for column in columns]
        inside = Counter(leaf for row in rows[:count] for leaf in row)
        done = effects(self._program, body)
        new: list[Any] = []
        for column in columns:
            leaf = self._replace(column, inside, done, body)
            if leaf is None:
                return None
            new.append(leaf)
        local = [column for column, leaf in zip(columns, new, strict=True) if _is_own(leaf, column)]
        if not _independent(new) or not _is_one_in_each_row(local):
            return None
        for leaf in new:
            if isinstance(leaf, RegisterRef):
                for name in leaf.array:
                    self._array_of[name] = leaf.array
        return new, count

    def _unswitch(self, count: int, body: Block, source: Source) -> Block:
        """A loop; where it is one branch on something invariant, the branch goes outside."""
        branch = body[0] if len(body) == 1 else None
        if isinstance(branch, If) and is_invariant(self._program, branch.condition, body):
            then, otherwise = (
                self._unswitch(count, way, source) if way else ()
                for way in (branch.then, branch.otherwise)
            )
            return (If(branch.condition, then, otherwise, branch.source),)
        self._loops += 1
        return (Loop(self._loops, count, body, source),)

    def _fitting(self, column: tuple[Any, ...]) -> int:
        """How many rows from the first continue this column's pattern."""
        first = column[0]
        count = 1
        if column[1] == first:
            while count < len(column) and column[count] == first:
                count += 1
        elif isinstance(first, FieldRef) and first.header in self._position:
            position = self._position[first.header]
            start = position[first.field]
            while (
                count < len(column)
                and column[count].header == first.header
                and position[column[count].field] == start + count
            ):
                count += 1
        else:
            seen = {first}
            while count < len(column) and column[count] not in seen:
                if isinstance(first, FieldRef) and column[count].header in self._position:
                    break
                seen.add(column[count])
                count += 1
        return count

    def _replace(
        self, column: tuple[Any, ...], inside: Counter[Any], done: Effects, body: Block
    ) -> Any:
        first = column[0]
        same = column[1] == first
        if isinstance(first, RegisterRef):
            return None if same or first.array else self._register_array(column)
        if same:
            if field_of(first) not in done.writes:
                return first
            scratch = (
                first.header not in self._position
                and field_of(first) not in self._read_by_switch
                and self._uses[first] == inside[first]
                and _is_set_first(self._program, body, first)
            )
            return self._local(first) if scratch else None
        if first.header in self._position:
            start = self._position[first.header][first.field]
            for array in field_arrays(self._program.headers[first.header].type):
                if array.first <= start and start + len(column) <= array.first + array.count:
                    return ArrayFieldRef(first.header, start, first.width_bits, first.signed)
            return None
        if any(
            self._uses[leaf] != inside[leaf] or field_of(leaf) in self._read_by_switch
            for leaf in column
        ):
            return None
        return self._local(first)

    def _local(self, leaf: FieldRef) -> LocalRef:
        name = "".join(c if c.isalnum() else "_" for c in leaf.field)
        return LocalRef(f"{leaf.header}_{name}".replace(".", "_"), leaf.width_bits, leaf.signed)

    def _register_array(self, column: tuple[RegisterRef, ...]) -> RegisterRef | None:
        names = tuple(ref.name for ref in column)
        shape = {(self._registers[n].size, self._registers[n].width_bits) for n in names}
        known = {self._array_of.get(name) for name in names}
        if len(shape) != 1 or known not in ({None}, {names}):
            return None
        return RegisterRef(names[0], names)


def _shape(node: Any, leaves: list[Any]) -> Any:
    """The node with fields and registers taken out (into ``leaves``), hashable."""
    if isinstance(node, FieldRef):
        leaves.append(node)
        return FieldRef, node.width_bits, node.signed
    if isinstance(node, RegisterRef):
        leaves.append(node)
        return RegisterRef
    if isinstance(node, tuple):
        return tuple(_shape(item, leaves) for item in node)
    if is_dataclass(node):
        parts = tuple(
            _shape(getattr(node, f.name), leaves) for f in fields(node) if f.name != "source"
        )
        return type(node), parts
    return node


def _rebuild(node: Any, leaves: Any) -> Any:
    """The inverse of :func:`_shape`: the node with the next leaves put in."""
    if isinstance(node, (FieldRef, RegisterRef)):
        return next(leaves)
    if isinstance(node, tuple):
        return tuple(_rebuild(item, leaves) for item in node)
    if is_dataclass(node) and not isinstance(node, type):
        changes = {
            f.name: _rebuild(getattr(node, f.name), leaves)
            for f in fields(node)
            if f.name != "source"
        }
        return replace(node, **changes)
    return node


def _alike(shapes: list[int], period: int) -> list[int]:
    """At each position, how many statements in a row equal the one ``period`` further on."""
    lengths = [0] * (len(shapes) + 1)
    for at in range(len(shapes) - period - 1, -1, -1):
        lengths[at] = lengths[at + 1] + 1 if shapes[at] == shapes[at + period] else 0
    return lengths


def _is_set_first(program: Program, body: Block, ref: FieldRef) -> bool:
    """Whether an iteration certainly gives it a value before it can be read."""
    for stmt in body:
        done = effects(program, stmt)
        if field_of(ref) in done.reads:
            return False
        if field_of(ref) in done.sets:
            return True
    return False


def _is_own(leaf: Any, column: tuple[Any, ...]) -> bool:
    """Whether other fields become the same local in other iterations."""
    return isinstance(leaf, LocalRef) and column[0] != column[1]


def _is_one_in_each_row(columns: list[tuple[Any, ...]]) -> bool:
    """Whether two columns are of one field in all rows or in none, and none is of two rows."""
    rows = list(zip(*columns, strict=True))
    alike = [tuple(row.index(leaf) for leaf in row) for row in rows]
    owners = [(leaf, number) for number, row in enumerate(rows) for leaf in set(row)]
    return len(set(alike)) < 2 and len(owners) == len({leaf for leaf, _ in owners})


def _independent(leaves: list[Any]) -> bool:
    """No iteration touches what another one writes: each array is walked at one offset only."""
    offsets: dict[str, set[int]] = {}
    for leaf in leaves:
        if isinstance(leaf, ArrayFieldRef):
            offsets.setdefault(leaf.header, set()).add(leaf.first)
    if any(len(starts) > 1 for starts in offsets.values()):
        return False
    arrays = {leaf.array for leaf in leaves if isinstance(leaf, RegisterRef)}
    members = [name for array in arrays for name in array]
    if len(members) != len(set(members)):
        return False
    return not any(isinstance(leaf, FieldRef) and leaf.header in offsets for leaf in leaves)


def _is_free(program: Program, body: Block) -> bool:
    """Whether an iteration changes nothing but what is its own, and always ends."""
    done = of_iteration(program, body)
    elements = done.writes.names(Kind.ELEMENT)
    return (
        not done.leaves
        and all(place.kind in OWN for place in done.writes.each)
        and elements.isdisjoint(done.reads.names(Kind.FIELD))
    )
