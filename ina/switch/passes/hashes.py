"""Hashes over an array of fields: they take all of it at once, from wherever it lies."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from ina.switch.ir.data import FieldArray, field_arrays
from ina.switch.ir.expr import FieldRef, WholeArray
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import Apply, Block, Hash, HashInput, If, Stmt
from ina.switch.ir.walk import all_parts, walk
from ina.switch.passes.blocks import change_blocks
from ina.switch.passes.storage import array_names


def gather_program(program: Program) -> Program:
    """The program, whose hashes name a whole array where they named its fields one by one."""
    if not any(isinstance(node, Hash) for node in walk(tuple(all_parts(program)))):
        return program
    return change_blocks(program, lambda block: _block(program, block))


def _block(program: Program, block: Block) -> Block:
    return tuple(_stmt(program, stmt) for stmt in block)


def _stmt(program: Program, stmt: Stmt) -> Stmt:
    if isinstance(stmt, Hash):
        return replace(stmt, inputs=_gathered(program, stmt.inputs))
    if isinstance(stmt, If):
        then, otherwise = (_block(program, way) for way in (stmt.then, stmt.otherwise))
        return replace(stmt, then=then, otherwise=otherwise)
    if isinstance(stmt, Apply):
        on_hit, on_miss = (_block(program, way) for way in (stmt.on_hit, stmt.on_miss))
        on_action = tuple((action, _block(program, way)) for action, way in stmt.on_action)
        return replace(stmt, on_hit=on_hit, on_miss=on_miss, on_action=on_action)
    return stmt


def _gathered(program: Program, inputs: tuple[HashInput, ...]) -> tuple[HashInput, ...]:
    done: list[HashInput] = []
    at = 0
    while at < len(inputs):
        array = _whole_array(program, inputs, at)
        if array is None:
            done.append(inputs[at])
            at += 1
            continue
        header = inputs[at].header
        value = WholeArray(header, array.first, array.count, array.width_bits)
        done.append(HashInput(value, array.count * array.width_bits, header))
        at += array.count
    return tuple(done)


def _whole_array(program: Program, inputs: tuple[HashInput, ...], at: int) -> FieldArray | None:
    """The array, if all of it begins here; of a header that is asked whether it is there."""
    first = inputs[at]
    if type(first.value) is not FieldRef or first.header != first.value.header:
        return None
    header = program.headers[first.header]
    if header.metadata or header.stack:
        return None
    for array in field_arrays(header.type):
        names = array_names(header.type, array)
        wanted = (replace(first, value=replace(first.value, field=name)) for name in names)
        found = islice(inputs, at, at + array.count)
        if first.value.field == names[0] and tuple(found) == tuple(wanted):
            return array
    return None
