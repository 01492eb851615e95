"""The main path's late fields: read where they stand until a packet is sure to leave.

Most packets of an aggregation are absorbed. Unpacking for them what only egress changes costs
loads and machine registers, so the main path's ingress reads such fields from the packet, and
unpacks them when ingress has not dropped it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ina.switch.ir.expr import FieldRef
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import Block, CopyHeader, SetValid
from ina.switch.ir.walk import pipeline_parts, targets, walk
from ina.switch.passes.main_path import ParserPath
from ina.switch.passes.storage import Storage

LateFields = frozenset[tuple[str, str]]
"""(header, field)"""


def late_fields(
    program: Program, path: ParserPath, ingress: Block, types: Mapping[str, Storage]
) -> LateFields:
    """Fields of the main path's headers that neither the parser nor ingress changes."""
    before = (
        *(state.body for state in program.states.values()),
        *pipeline_parts(program, ingress),
    )
    changed = {(t.header, t.field) for t in targets(before) if isinstance(t, FieldRef)}
    whole: set[str] = set()  # headers that are handled as a whole before egress
    for node in walk(before):
        if isinstance(node, CopyHeader):
            whole |= {node.target.name, node.value.name}
        elif isinstance(node, SetValid) and node.valid:
            whole.add(node.header.name)
    return frozenset(
        (name, field.name)
        for name in path.offsets_bytes
        if name not in whole
        for field in program.headers[name].type.fields
        if field.name in types[program.headers[name].type.name].scalars
        and (name, field.name) not in changed
        and field.offset_bits % 8 + field.width_bits <= 64
    )
