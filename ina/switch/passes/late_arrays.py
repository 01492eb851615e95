"""The main path's late arrays: a packet's values are read where they stand, and written once.

Unpacking 256 values, adding them to a slot and packing the sums again would touch them five times.
On the main path a loop reads them from the packet. When it leaves in the packet what it left in the
slot, the packet only remembers that slot; the deparser reads the sums from there, and so does a
hash over all of them.

That is right as long as nothing touches the values or the slot again before the packet is sent:
:func:`find_late_arrays` makes sure that every way through ingress passes at most one loop that
does, and that egress does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ina.switch.ir.data import FieldArray
from ina.switch.ir.expr import ArrayFieldRef, LocalRef
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import (
    Apply,
    Assign,
    Block,
    If,
    Loop,
    RegisterRead,
    RegisterRef,
    RegisterWrite,
)
from ina.switch.ir.walk import pipeline_parts, walk
from ina.switch.passes.effect_places import Effects, Kind, Place
from ina.switch.passes.effects import (
    effects,
    effects_but_arrays,
    effects_of_parser,
    of_iteration,
    updates,
    verifications,
)
from ina.switch.passes.main_path import MainIngress, ParserPath
from ina.switch.passes.storage import Storage, array_names
from ina.switch.passes.uses import TypeUse


@dataclass(frozen=True)
class LateArray:
    """An array of fields of one header of the main path."""

    header: str
    array: FieldArray
    kept_in: Mapping[int, RegisterRef]
    """By the number of a loop: the registers that hold the same values when it is done."""
    is_written: bool
    """Whether the program changes values; else they are sent as they came."""
    fills_header: bool
    """Whether the header is nothing else."""
    ends_frame: bool
    """Whether it is the last that the deparser writes: copies of a packet can share it."""
    has_trailer: bool
    """Whether it ends a header, and what the deparser writes behind that are headers of the path:
    copies can share it, and each has those of its own."""


def holds(header: str, array: FieldArray, ref: object) -> bool:
    """Whether ``ref`` is an element."""
    return (
        isinstance(ref, ArrayFieldRef)
        and ref.header == header
        and array.first <= ref.first < array.first + array.count
    )


def find_late_arrays(
    program: Program,
    path: ParserPath,
    ingress: MainIngress,
    types: Mapping[str, Storage],
    uses: Mapping[str, TypeUse],
) -> dict[str, LateArray]:
    """By header; a header with several arrays has none that is late."""
    found = {}
    for name in path.offsets_bytes:
        header_type = program.headers[name].type
        arrays = types[header_type.name].arrays
        kept_in = _kept_in(program, ingress, name, arrays[0]) if len(arrays) == 1 else None
        if kept_in is None:
            continue
        [array] = arrays
        is_last = array.first + array.count == len(header_type.fields)
        behind = _behind(program, name)
        on_path = path.offsets_bytes.keys() >= set(behind)
        found[name] = LateArray(
            header=name,
            array=array,
            kept_in=kept_in,
            is_written=not uses[header_type.name].written.isdisjoint(
                array_names(header_type, array)
            ),
            fills_header=array.count == len(header_type.fields),
            ends_frame=is_last and not behind and name in program.deparse,
            has_trailer=is_last and bool(behind) and on_path,
        )
    return found


def _behind(program: Program, header: str) -> tuple[str, ...]:
    """The headers that the deparser writes behind this one."""
    written = program.deparse
    return written[written.index(header) + 1 :] if header in written else ()


def _kept_in(
    program: Program, ingress: MainIngress, header: str, array: FieldArray
) -> dict[int, RegisterRef] | None:
    """:attr:`LateArray.kept_in`; None: the array cannot be late."""
    in_loops = of_iteration(program, ingress.block)
    elsewhere = _elsewhere(program, ingress)
    for done in (in_loops, elsewhere):
        for name in array_names(program.headers[header].type, array):
            place = Place(Kind.FIELD, header, name)
            if place in done.reads or place in done.writes:
                return None
    parts = tuple(pipeline_parts(program, ingress.block))
    kept_in: dict[int, RegisterRef] = {}
    for loop in (node for node in walk(parts) if isinstance(node, Loop)):
        refs = [node for node in walk(loop.body) if holds(header, array, node)]
        if any(r.first != array.first for r in refs) or (refs and loop.count != array.count):
            return None  # only a part of the values
        registers = _left_in(program, loop, header, array)
        if refs and registers is not None:
            kept_in[loop.number] = registers
    taken = {name for registers in kept_in.values() for name in registers.array}
    written = in_loops.writes.names(Kind.REGISTER) | elsewhere.writes.names(Kind.REGISTER)
    if not taken.isdisjoint(written):
        return None  # what loops of ingress write is looked at below
    once = _Once(program, header, frozenset(taken))
    return kept_in if once.check(ingress.block, False)[0] else None


def _elsewhere(program: Program, ingress: MainIngress) -> Effects:
    """Of all but the block of ingress and what is extracted."""
    keys = tuple(state.keys for state in program.states.values())
    asked = effects_but_arrays(program, keys, ingress.asked, verifications(program))
    copies = effects_but_arrays(program, program.egress, updates(program))
    return effects_of_parser(program).then(asked).then(copies)


def _left_in(program: Program, loop: Loop, header: str, array: FieldArray) -> RegisterRef | None:
    """The registers that hold, after each iteration, what the late array's element holds."""
    own: LocalRef | None = None  # the local that the element is a copy of
    stored: LocalRef | None = None  # the same of the register
    registers: RegisterRef | None = None
    for stmt in loop.body:
        if not isinstance(stmt, (Assign, RegisterRead, RegisterWrite)):
            return None
        if not isinstance(stmt, Assign):
            if registers is not None and stmt.register != registers:
                return None
            registers = stmt.register
        if isinstance(stmt, RegisterWrite):
            stored = stmt.value if isinstance(stmt.value, LocalRef) else None
            continue
        if isinstance(stmt.target, LocalRef):
            own = None if own == stmt.target else own
            stored = None if stored == stmt.target else stored
            if isinstance(stmt, RegisterRead):
                stored = stmt.target
        elif holds(header, array, stmt.target):
            value = stmt.value if isinstance(stmt, Assign) else None
            own = value if isinstance(value, LocalRef) else None
        else:
            return None
    if own is None or own != stored or registers is None:
        return None
    if len(registers.array) != array.count:
        return None
    [width] = {it.width_bits for it in program.registers if it.name == registers.name}
    return registers if own.width_bits == width == array.width_bits else None


@dataclass(frozen=True)
class _Once:
    """Looks for ways through ingress that touch array or registers twice."""

    program: Program
    header: str
    taken: frozenset[str]

    def check(self, block: Block, touched: bool) -> tuple[bool, bool]:
        """(no way through the block touches them twice, some way touches them)."""
        for stmt in block:
            ways: list[Block] = []
            if isinstance(stmt, Loop):
                if self._touches(stmt):
                    if touched:
                        return False, True
                    touched = True
            elif isinstance(stmt, If):
                ways = [stmt.then, stmt.otherwise]
            elif isinstance(stmt, Apply):
                ways = self._ways(stmt)
            results = [self.check(way, touched) for way in ways]
            if not all(fine for fine, _ in results):
                return False, True
            touched = touched or any(some for _, some in results)
        return True, touched

    def _ways(self, stmt: Apply) -> list[Block]:
        table = self.program.table(stmt.table)
        assert table is not None
        followers = dict(stmt.on_action)
        return [
            (*action.body, *followers.get(action.index, ()), *after)
            for action in self.program.possible_actions(table)
            for after in (stmt.on_hit, stmt.on_miss)
        ]

    def _touches(self, loop: Loop) -> bool:
        done = of_iteration(self.program, loop.body)
        element = Place(Kind.ELEMENT, self.header)
        written = effects(self.program, loop).writes.names(Kind.REGISTER)
        return element in done.reads or element in done.writes or bool(self.taken & written)
