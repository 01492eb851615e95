"""The main path's early tables: looked up before the packet is checked.

A lookup is a chain of loads, each of which needs the one before: pack the key, hash it, read the
index, read the entry. Where the key is in the packet as it came, the chain can begin before the
checksums are verified, which the processor then does meanwhile. A lookup changes nothing, so it
does no harm if the table is not applied in the end.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ina.switch.ir.data import STANDARD
from ina.switch.ir.expr import FieldRef
from ina.switch.ir.program import MatchKind, Program
from ina.switch.ir.stmt import Apply, Block
from ina.switch.ir.walk import pipeline_parts, targets, walk
from ina.switch.passes.main_path import ON_ARRIVAL


def early_tables(
    program: Program, ingress: Block, in_packet: AbstractSet[tuple[str, str]]
) -> list[str]:
    """Names of exact tables that most packets of the main path reach, once, with such a key.

    ``in_packet``: (header, field) that the main path's ingress reads where they stand.
    """
    parser = (state.body for state in program.states.values())
    code = (*pipeline_parts(program, ingress), *parser)
    changed = {target for target in targets(code) if isinstance(target, FieldRef)}
    applied = [node.table for node in walk(ingress) if isinstance(node, Apply)]
    found = []
    for name in _usually_applied(ingress):
        table = program.table(name)
        assert table is not None
        if applied.count(name) == 1 and all(
            key.kind is MatchKind.EXACT
            and isinstance(key.value, FieldRef)
            and key.value not in changed
            and (_is_set_on_arrival(key.value) or (key.value.header, key.value.field) in in_packet)
            for key in table.keys
        ):
            found.append(name)
    return found


def _usually_applied(block: Block) -> list[str]:
    """Tables applied in every case, or when the one before was hit."""
    names: list[str] = []
    for stmt in block:
        if isinstance(stmt, Apply):
            names += [stmt.table, *_usually_applied(stmt.on_hit)]
    return names


def _is_set_on_arrival(ref: FieldRef) -> bool:
    return ref.header == STANDARD and ref.field in ON_ARRIVAL
