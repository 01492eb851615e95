"""Register fusion: registers that are used together lie together.

Registers of one size that the program indexes by the same expressions become one array of structs,
so that one packet's state is one run of memory. (As separate arrays of 2^k elements they would
fall on the same cache sets: measured, 90 times slower.) It is a choice of layout: any grouping is
right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

from ina.switch.ir.expr import Expr, FieldRef
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import Assign, RegisterRead, RegisterWrite
from ina.switch.ir.walk import all_parts, walk
from ina.switch.passes.effect_places import Place, field_of
from ina.switch.passes.effects import effects, is_plain


@dataclass(frozen=True)
class RegisterGroup:
    """One array of structs in the state. A run that a loop walks is an array in the struct."""

    number: int
    size: int
    runs: tuple[tuple[str, ...], ...]
    """Its registers in order of declaration: a run of several, or one by itself."""


def fuse(program: Program) -> tuple[RegisterGroup, ...]:
    """Groups in order of declaration; each register is in exactly one."""
    nodes = list(walk(tuple(all_parts(program))))
    resolve = _single_copies(program, nodes)
    indices: dict[str, set[Hashable]] = {register.name: set() for register in program.registers}
    run_of: dict[str, tuple[str, ...]] = {}
    for node in nodes:
        if isinstance(node, (RegisterRead, RegisterWrite)):
            for name in node.register.array or (node.register.name,):
                indices[name].add(_resolved(node.index, resolve))
            for name in node.register.array:
                run_of.setdefault(name, node.register.array)
    groups: dict[Hashable, list[tuple[str, ...]]] = {}
    sizes = {register.name: register.size for register in program.registers}
    placed: set[str] = set()
    for register in program.registers:
        if register.name in placed:
            continue
        key: Hashable = (register.size, frozenset(indices[register.name]))
        run = run_of.get(register.name, (register.name,))
        groups.setdefault(key if indices[register.name] else register.name, []).append(run)
        assert {sizes[name] for name in run} == {register.size}
        placed.update(run)
    return tuple(
        RegisterGroup(number, sizes[runs[0][0]], tuple(runs))
        for number, runs in enumerate(groups.values())
    )


def _single_copies(program: Program, nodes: list[object]) -> dict[FieldRef, Expr]:
    """Fields that are assigned once in the whole program, by a plain copy."""
    values: dict[FieldRef, Expr] = {}
    writes: Counter[Place] = Counter()
    for node in nodes:
        if is_plain(node):
            writes.update(effects(program, node).writes.each)
        if isinstance(node, Assign) and isinstance(node.target, FieldRef):
            values[node.target] = node.value
    return {
        target: value
        for target, value in values.items()
        if writes[field_of(target)] == 1 and isinstance(value, FieldRef)
    }


def _resolved(index: Expr, copies: dict[FieldRef, Expr]) -> Expr:
    for _ in range(8):
        if not isinstance(index, FieldRef) or index not in copies:
            break
        index = copies[index]
    return index
