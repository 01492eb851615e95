"""The main path's late arrays: a packet's values are read where they stand, and written once.

Unpacking 256 values, adding them to a slot and packing the sums again would touch them five times.
On the main path a loop reads them from the packet. When it leaves in the packet what it left in the
slot, the packet only remembers that slot; the deparser reads the sums from there.

That is right as long as nothing touches the values or the slot again before the packet is sent:
:func:`find_late_arrays` makes sure that every way through ingress passes at most one loop that
does, and that egress does not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ina.switch.ir.data import HeaderType
from ina.switch.ir.expr import ArrayFieldRef, FieldRef, LocalRef
from ina.switch.ir.stmt import (
    Apply,
    Assign,
    Block,
    CopyHeader,
    If,
    Loop,
    RegisterRead,
    RegisterRef,
    RegisterWrite,
    SetValid,
)
from ina.switch.ir.walk import pipeline_parts, walk

if TYPE_CHECKING:
    from ina.switch.emit_c.layout import Layout, NamedArray


@dataclass
class LateArray:
    """An array of fields of one header of the main path."""

    header: str
    array: NamedArray
    same_as: dict[int, RegisterRef] = field(default_factory=dict)
    """By ``id`` of a loop: the registers that hold the same values when it is done."""

    def fields(self, header_type: HeaderType) -> set[str]:
        """Their names."""
        first = self.array.first
        return {f.name for f in header_type.fields[first : first + self.array.count]}

    def holds(self, ref: object) -> bool:
        """Whether ``ref`` is an element."""
        return (
            isinstance(ref, ArrayFieldRef)
            and ref.header == self.header
            and self.array.first <= ref.first < self.array.first + self.array.count
        )


def find_late_arrays(layout: Layout) -> dict[str, LateArray]:
    """By header; a header with several arrays has none that is late."""
    if layout.main_path is None:
        return {}
    found = {}
    for name in layout.main_path.offsets_bytes:
        arrays = layout.type_of(name).arrays
        if len(arrays) == 1 and arrays[0].width_bits in (8, 16, 32, 64):
            late = _late(layout, name, arrays[0])
            if late is not None:
                found[name] = late
    return found


def _late(layout: Layout, header: str, array: NamedArray) -> LateArray | None:
    program = layout.program
    ingress = pipeline_parts(program, layout.main_ingress)
    late = LateArray(header, array)
    elsewhere = (
        *(state.body for state in program.states.values()),
        *(state.keys for state in program.states.values()),
        *pipeline_parts(program, program.egress),
        *program.checksums,
    )
    if any(_is_in(node, header, array, layout) for node in walk(elsewhere)):
        return None
    for node in walk((*ingress, *elsewhere)):
        if isinstance(node, FieldRef) and _is_in(node, header, array, layout):
            return None
        if isinstance(node, CopyHeader) and header in (node.target.name, node.value.name):
            return None
        if isinstance(node, SetValid) and node.header.name == header and node.valid:
            return None
    loops = [node for node in walk(tuple(ingress)) if isinstance(node, Loop)]
    for loop in loops:
        refs = [node for node in walk(loop.body) if late.holds(node)]
        if any(r.first != array.first for r in refs) or (refs and loop.count != array.count):
            return None  # only a part of the values
        registers = _left_in(loop, late)
        if refs and registers is not None:
            late.same_as[id(loop)] = registers
    taken = {name for registers in late.same_as.values() for name in registers.array}
    in_loops = {id(node) for loop in loops for node in walk(loop.body)}
    for node in walk((*ingress, *elsewhere)):
        if (
            isinstance(node, RegisterWrite)
            and id(node) not in in_loops
            and taken & {node.register.name, *node.register.array}
        ):
            return None
    return late if _once(layout, late, taken, layout.main_ingress, False)[0] else None


def _is_in(node: object, header: str, array: NamedArray, layout: Layout) -> bool:
    if isinstance(node, ArrayFieldRef):
        return node.header == header
    if not isinstance(node, FieldRef) or node.header != header:
        return False
    fields = layout.program.headers[header].type.fields
    return any(f.name == node.field for f in fields[array.first : array.first + array.count])


def _left_in(loop: Loop, late: LateArray) -> RegisterRef | None:
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
        elif late.holds(stmt.target):
            value = stmt.value if isinstance(stmt, Assign) else None
            own = value if isinstance(value, LocalRef) else None
        else:
            return None
    if own is None or own != stored or registers is None:
        return None
    if len(registers.array) != late.array.count:
        return None
    return registers if own.width_bits == late.array.width_bits else None


def _once(
    layout: Layout, late: LateArray, taken: set[str], block: Block, touched: bool
) -> tuple[bool, bool]:
    """(no way through the block touches array or registers twice, some way touches them)."""
    for stmt in block:
        ways: list[Block] = []
        if isinstance(stmt, Loop):
            if _touches(stmt, late, taken):
                if touched:
                    return False, True
                touched = True
        elif isinstance(stmt, If):
            ways = [stmt.then, stmt.otherwise]
        elif isinstance(stmt, Apply):
            table = layout.program.table(stmt.table)
            assert table is not None
            default = layout.program.actions[table.default.action]
            followers = dict(stmt.on_action)
            for action in {a.index: a for a in (*table.actions, default)}.values():
                for after in (stmt.on_hit, stmt.on_miss):
                    ways.append((*action.body, *followers.get(action.index, ()), *after))
        results = [_once(layout, late, taken, way, touched) for way in ways]
        if not all(fine for fine, _ in results):
            return False, True
        touched = touched or any(some for _, some in results)
    return True, touched


def _touches(loop: Loop, late: LateArray, taken: set[str]) -> bool:
    def matters(node: Any) -> bool:
        if isinstance(node, RegisterWrite):
            return bool(taken & {node.register.name, *node.register.array})
        return late.holds(node)

    return any(matters(node) for node in walk(loop.body))
