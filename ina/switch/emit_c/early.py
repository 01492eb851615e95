"""The main path's early tables: looked up before the packet is checked.

A lookup is a chain of loads, each of which needs the one before: pack the key, hash it, read the
index, read the entry. Where the key is in the packet as it came, the chain can begin before the
checksums are verified, which the processor then does meanwhile. A lookup changes nothing, so it
does no harm if the table is not applied in the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ina.switch.ir.expr import FieldRef
from ina.switch.ir.program import MatchKind
from ina.switch.ir.stmt import Apply, Block
from ina.switch.ir.walk import pipeline_parts, targets, walk
from ina.switch.passes.main_path import ON_ARRIVAL

if TYPE_CHECKING:
    from ina.switch.emit_c.layout import Layout


def early_tables(layout: Layout) -> list[str]:
    """Names of exact tables that most packets of the main path reach, once, with such a key."""
    if layout.main_path is None:
        return []
    ingress = pipeline_parts(layout.program, layout.main_ingress)
    changed = {t for t in targets((*ingress, *layout.parser_parts)) if isinstance(t, FieldRef)}
    applied = [node.table for node in walk(layout.main_ingress) if isinstance(node, Apply)]
    found = []
    for name in _usually_applied(layout.main_ingress):
        table = layout.program.table(name)
        assert table is not None
        if applied.count(name) == 1 and all(
            key.kind is MatchKind.EXACT
            and isinstance(key.value, FieldRef)
            and key.value not in changed
            and _is_known_early(layout, key.value)
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


def _is_known_early(layout: Layout, ref: FieldRef) -> bool:
    if ref.header == "standard_metadata":
        return ref.field in ON_ARRIVAL
    assert layout.main_path is not None
    layout.on_main = True
    stands = ref.header in layout.main_path.offsets_bytes and layout.stands_in_packet(ref)
    layout.on_main = False
    return stands
