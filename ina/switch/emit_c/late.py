"""The main path's late fields: read where they stand until a packet is sure to leave.

Most packets of an aggregation are absorbed. Unpacking for them what only egress changes costs
loads and machine registers, so the main path's ingress reads such fields from the packet, and
unpacks them when ingress has not dropped it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ina.switch.ir.expr import FieldRef
from ina.switch.ir.stmt import CopyHeader, SetValid
from ina.switch.ir.walk import pipeline_parts, targets, walk

if TYPE_CHECKING:
    from ina.switch.emit_c.layout import Layout

Late = frozenset[tuple[str, str]]
"""(header, field)"""


def late_fields(layout: Layout) -> Late:
    """Fields of the main path's headers that neither the parser nor ingress changes."""
    program, path = layout.program, layout.main_path
    if path is None:
        return frozenset()
    before = (
        *(state.body for state in program.states.values()),
        *pipeline_parts(program, layout.main_ingress),
    )
    changed = {(t.header, t.field) for t in targets(before) if isinstance(t, FieldRef)}
    whole: set[str] = set()  # headers that are handled as a whole before egress
    for node in walk(before):
        if isinstance(node, CopyHeader):
            whole |= {node.target.name, node.value.name}
        elif isinstance(node, SetValid) and node.valid:
            whole.add(node.header.name)
    found = set()
    for name in path.offsets_bytes:
        type_layout = layout.type_of(name)
        in_array = {
            field.name
            for array in type_layout.arrays
            for field in type_layout.type.fields[array.first : array.first + array.count]
        }
        for field in type_layout.type.fields:
            if (
                name not in whole
                and field.name in type_layout.members
                and field.name not in in_array
                and (name, field.name) not in changed
                and field.offset_bits % 8 + field.width_bits <= 64
            ):
                found.add((name, field.name))
    return frozenset(found)
