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
from ina.switch.ir.walk import walk
from ina.switch.passes.effects import effects_before, effects_of_keys, effects_of_parser
from ina.switch.passes.main_path import ON_ARRIVAL


def early_tables(
    program: Program, ingress: Block, in_packet: AbstractSet[tuple[str, str]]
) -> list[str]:
    """Names of exact tables that most packets of the main path reach, once, with such a key.

    ``in_packet``: (header, field) that the main path's ingress reads where they stand.
    """
    applied = [node.table for node in walk(ingress) if isinstance(node, Apply)]
    parser = effects_of_parser(program)
    found = []
    for name in _usually_applied(ingress):
        table = program.table(name)
        assert table is not None
        key = effects_of_keys(program, name)
        before = effects_before(program, ingress, name)
        if (
            applied.count(name) == 1
            and not parser.disturb(key)
            and not before.disturb(key)
            and all(
                key.kind is MatchKind.EXACT
                and isinstance(key.value, FieldRef)
                and _is_at_hand(key.value, in_packet)
                for key in table.keys
            )
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


def _is_at_hand(ref: FieldRef, in_packet: AbstractSet[tuple[str, str]]) -> bool:
    is_set_on_arrival = ref.header == STANDARD and ref.field in ON_ARRIVAL
    return is_set_on_arrival or (ref.header, ref.field) in in_packet
