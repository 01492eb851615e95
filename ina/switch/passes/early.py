"""The main path's early tables: looked up before the packet is checked.

A lookup is a chain of loads, each of which needs the one before: pack the key, hash it, read the
index, read the entry. Where the key is in the packet as it came, the chain can begin before the
checksums are verified, which the processor then does meanwhile. A lookup changes nothing, so it
does no harm if the table is not applied in the end.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

from ina.switch.ir.data import STANDARD
from ina.switch.ir.expr import FieldRef
from ina.switch.ir.program import MatchKind, Program
from ina.switch.ir.stmt import Apply, Assign, Block, Hash, RegisterRead
from ina.switch.ir.walk import targets, walk
from ina.switch.passes.main_path import ON_ARRIVAL


def early_tables(
    program: Program, ingress: Block, in_packet: AbstractSet[tuple[str, str]]
) -> list[str]:
    """Names of exact tables that most packets of the main path reach, once, with such a key.

    ``in_packet``: (header, field) that the main path's ingress reads where they stand.
    """
    applied = [node.table for node in walk(ingress) if isinstance(node, Apply)]
    found = []
    for name in _usually_applied(ingress):
        table = program.table(name)
        assert table is not None
        changed = _changed_before(program, ingress, name)
        if applied.count(name) == 1 and all(
            key.kind is MatchKind.EXACT
            and isinstance(key.value, FieldRef)
            and key.value not in changed
            and (_is_set_on_arrival(key.value) or (key.value.header, key.value.field) in in_packet)
            for key in table.keys
        ):
            found.append(name)
    return found


def _changed_before(program: Program, ingress: Block, name: str) -> set[FieldRef]:
    """The fields that a packet may have other values in when the table is applied."""
    code: list[Any] = [state.body for state in program.states.values()]
    for node in walk(ingress):  # in the order of the program, which has no way back
        if isinstance(node, Apply):
            if node.table == name:
                break
            table = program.table(node.table)
            assert table is not None
            code += [action.body for action in program.possible_actions(table)]
        elif isinstance(node, (Assign, RegisterRead, Hash)):
            code.append(node)
    return {target for target in targets(tuple(code)) if isinstance(target, FieldRef)}


def _usually_applied(block: Block) -> list[str]:
    """Tables applied in every case, or when the one before was hit."""
    names: list[str] = []
    for stmt in block:
        if isinstance(stmt, Apply):
            names += [stmt.table, *_usually_applied(stmt.on_hit)]
    return names


def _is_set_on_arrival(ref: FieldRef) -> bool:
    return ref.header == STANDARD and ref.field in ON_ARRIVAL
