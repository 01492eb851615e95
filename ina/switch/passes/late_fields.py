"""The main path's late fields: read where they stand until a packet is sure to leave.

Most packets of an aggregation are absorbed. Unpacking for them what only egress changes costs
loads and machine registers, so the main path's ingress reads such fields from the packet, and
unpacks them when ingress has not dropped it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ina.switch.ir.program import Program
from ina.switch.ir.stmt import Block, Extract
from ina.switch.passes.effect_places import Effects, Kind, Place
from ina.switch.passes.effects import effects, effects_of_parser
from ina.switch.passes.main_path import ParserPath
from ina.switch.passes.storage import Storage

LateFields = frozenset[tuple[str, str]]
"""(header, field)"""


def late_fields(
    program: Program, path: ParserPath, ingress: Block, types: Mapping[str, Storage]
) -> LateFields:
    """Fields of the main path's headers that neither the parser nor ingress changes."""
    before = effects_of_parser(program).then(effects(program, ingress))
    too_soon = _read_too_soon(program, path)
    return frozenset(
        (name, field.name)
        for name in path.offsets_bytes
        if name not in before.whole
        for field in program.headers[name].type.fields
        if field.name in types[program.headers[name].type.name].scalars
        and Place(Kind.FIELD, name, field.name) not in before.writes
        and (name, field.name) not in too_soon
        and field.offset_bits % 8 + field.width_bits <= 64
    )


def _read_too_soon(program: Program, path: ParserPath) -> set[tuple[str, str]]:
    """Fields that the parser reads before their header is extracted: nowhere in the packet then."""
    found: set[tuple[str, str]] = set()
    done = Effects()
    for state, _ in path.steps:
        for stmt in (*state.body, *state.keys):
            if isinstance(stmt, Extract):
                found |= {(name, field) for name, field in done.reads.fields() if name == stmt.name}
            else:
                done = done.then(effects(program, stmt))
    return found
