"""Register fusion: registers that are used together lie together.

Registers of one size that the program indexes by the same expressions become one array of structs,
so that one packet's state is one run of memory. (As separate arrays of 2^k elements they would
fall on the same cache sets: measured, 90 times slower.) It is a choice of layout: any grouping is
right.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ina.switch.ir.expr import Expr, FieldRef
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import Assign, RegisterRead, RegisterWrite
from ina.switch.ir.walk import all_parts, walk

if TYPE_CHECKING:
    from ina.switch.emit_c.layout import Names


@dataclass
class RegisterGroup:
    """One array of structs in the state."""

    name: str
    size: int
    scalars: list[str] = field(default_factory=list)
    arrays: list[tuple[str, ...]] = field(default_factory=list)
    members: dict[str, str] = field(default_factory=dict)  # register -> member expression
    array_names: dict[tuple[str, ...], str] = field(default_factory=dict)

    @property
    def local(self) -> str:
        """The variable that points to it in a block. A loop's own (at_0) are not names of P4."""
        return f"at_{self.name}"


def fuse(program: Program, names: Names) -> list[RegisterGroup]:
    """Groups in order of declaration; each register is in exactly one."""
    nodes = list(walk(tuple(all_parts(program))))
    resolve = _single_copies(nodes)
    indices: dict[str, set[Hashable]] = {register.name: set() for register in program.registers}
    array_of: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        if isinstance(node, (RegisterRead, RegisterWrite)):
            for name in node.register.array or (node.register.name,):
                indices[name].add(_resolved(node.index, resolve))
            for name in node.register.array:
                array_of.setdefault(name, node.register.array)
    groups: dict[Hashable, RegisterGroup] = {}
    by_name = {register.name: register for register in program.registers}
    placed = set()
    for register in program.registers:
        if register.name in placed:
            continue
        key: Hashable = (register.size, frozenset(indices[register.name]))
        if not indices[register.name]:
            key = register.name
        if key not in groups:
            groups[key] = RegisterGroup(names.get("register", register.name), register.size)
        group = groups[key]
        array = array_of.get(register.name)
        if array is None:
            group.scalars.append(register.name)
            group.members[register.name] = names.get(f"member {group.name}", register.name)
            placed.add(register.name)
            continue
        array_name = names.get(f"member {group.name}", array[0] + "_array")
        group.arrays.append(array)
        group.array_names[array] = array_name
        for position, member in enumerate(array):
            assert by_name[member].size == register.size
            group.members[member] = f"{array_name}[{position}]"
            placed.add(member)
    return list(groups.values())


def _single_copies(nodes: list[object]) -> dict[FieldRef, Expr]:
    """Fields that are assigned once in the whole program, by a plain copy."""
    assigned: dict[FieldRef, list[Expr | None]] = {}
    for node in nodes:
        if isinstance(node, Assign) and isinstance(node.target, FieldRef):
            assigned.setdefault(node.target, []).append(node.value)
        elif isinstance(node, RegisterRead) and isinstance(node.target, FieldRef):
            assigned.setdefault(node.target, []).append(None)
    return {
        target: values[0]
        for target, values in assigned.items()
        if len(values) == 1 and isinstance(values[0], FieldRef)
    }


def _resolved(index: Expr, copies: dict[FieldRef, Expr]) -> Expr:
    for _ in range(8):
        if not isinstance(index, FieldRef) or index not in copies:
            break
        index = copies[index]
    return index
