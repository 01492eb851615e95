"""What a packet takes from ingress to egress beside its bytes, where these are two programs.

Between them only the frame and some bytes in front of it go on. Egress has its headers from the
frame, by which of them are valid; what it reads of metadata is carried.
"""

from __future__ import annotations

from dataclasses import dataclass

from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.data import STANDARD
from ina.switch.ir.expr import FieldRef
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import If
from ina.switch.ir.walk import pipeline_parts, walk
from ina.switch.passes.effect_places import Kind, Place
from ina.switch.passes.effects import (
    effects,
    effects_of_parser,
    field_ref,
    is_plain,
    updates,
)

_OF_EACH_COPY = frozenset(
    {
        *("egress_port", "egress_spec", "egress_rid", "packet_length", "enq_timestamp"),
        *("enq_qdepth", "deq_qdepth", "deq_timedelta", "egress_global_timestamp"),
    }
)
"""Fields of standard_metadata that are set as a copy comes to egress."""


@dataclass(frozen=True)
class Carried:
    """Of a program."""

    headers: tuple[str, ...]
    """In the order of the frame: a bit for each says whether it is there."""
    fields: tuple[FieldRef, ...]
    """Of metadata; what egress finds in no other is 0, as it was before ingress."""


def carried(program: Program) -> Carried:
    """Raises UnsupportedProgramError: egress reads a header that no frame has."""
    sums = tuple(it for it in updates(program) if _is_sent(program, it.target.header))
    reads = effects(program, program.egress, sums).reads
    before = effects_of_parser(program).then(effects(program, program.ingress)).writes
    sent = program.deparse
    for name, read in sorted(reads.fields()):
        if not program.headers[name].metadata and name not in sent:
            what = f"{name}.{read} in egress, which is in no frame"
            raise UnsupportedProgramError(what, _place(program, name, read))
    fields = []
    for name, header in program.headers.items():
        if not header.metadata:
            continue
        whole = name in reads.names(Kind.FIELD) and name in reads.whole
        for field in header.type.fields:
            is_read = whole or (name, field.name) in reads.fields()
            is_standard = name == STANDARD
            is_set = is_standard or Place(Kind.FIELD, name, field.name) in before
            if is_read and is_set and not (is_standard and field.name in _OF_EACH_COPY):
                fields.append(field_ref(program, name, field.name))
    return Carried(tuple(sent), tuple(fields))


def _is_sent(program: Program, header: str) -> bool:
    """Whether its checksum is of any use."""
    return program.headers[header].metadata or header in program.deparse


def _place(program: Program, header: str, field: str) -> str:
    """The first statement of a copy's way that reads it; empty: the sources do not say."""
    wanted = Place(Kind.FIELD, header, field)
    for node in walk(tuple(pipeline_parts(program, program.egress))):
        if is_plain(node) or isinstance(node, If):
            part = node.condition if isinstance(node, If) else node
            if wanted in effects(program, part).reads:
                return str(node.source)
    return ""
