"""Copies of a packet: each starts from what ingress left, so what egress changes is kept aside."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ina.switch.ir.data import MIN_ARRAY_FIELDS, STANDARD, field_arrays
from ina.switch.ir.expr import FieldRef
from ina.switch.ir.program import Program
from ina.switch.passes.effect_places import Effects, Kind, Place
from ina.switch.passes.effects import effects, effects_of_copies, effects_of_parser, field_ref

_SET_FOR_EACH = frozenset({"egress_port", "egress_spec", "egress_rid"})
"""Fields of standard_metadata that a copy has of its own."""


@dataclass(frozen=True)
class Changed:
    """What egress or the update of checksums may change."""

    length: bool
    """Whether a packet may be truncated."""
    fields: tuple[FieldRef, ...]
    whole: tuple[str, ...]
    """Headers and stacks as a whole, with their validity."""
    validity: tuple[str, ...]
    """Headers that become invalid at most: what is in them stays."""


def changed_by_egress(program: Program) -> Changed:
    """But for what is set anew for each copy, and metadata that egress only writes."""
    done = effects_of_copies(program)
    headers = program.headers
    whole = {headers[name].stack or name for name in _whole(program, done)}
    whole |= done.writes.names(Kind.FILL)
    validity = done.writes.names(Kind.VALID) - whole
    kept = {(ref.header, ref.field) for refs in program.turns.field_lists.values() for ref in refs}
    fields = [
        field_ref(program, header, name)
        for header, name in sorted(done.writes.fields())
        if (headers[header].stack or header) not in whole
        and not (header == STANDARD and name in _SET_FOR_EACH)
        and (
            not headers[header].metadata
            or Place(Kind.FIELD, header, name) in done.reads
            or (header, name) in kept
        )
    ]
    is_truncated = Place(Kind.TRUNCATION) in done.writes
    return Changed(is_truncated, tuple(fields), tuple(sorted(whole)), tuple(sorted(validity)))


def counts_length(program: Program) -> bool:
    """Whether egress is told a length that the program may have changed before."""
    before = effects_of_parser(program).then(effects(program, program.ingress))
    asked = Place(Kind.FIELD, STANDARD, "packet_length") in effects_of_copies(program).reads
    return asked and Place(Kind.LENGTH) in before.writes


def _whole(program: Program, done: Effects) -> set[str]:
    """Headers, elements of stacks, and those of which as much as an array changes."""
    found = set(done.writes.whole)
    found |= {name for name in done.writes.names(Kind.VALID) if program.headers[name].stack}
    of_arrays: Counter[str] = Counter()
    for header, field in done.writes.fields():
        header_type = program.headers[header].type
        number = header_type.fields.index(header_type.by_name[field])
        of_arrays[header] += any(
            array.first <= number < array.first + array.count for array in field_arrays(header_type)
        )
        if program.headers[header].stack:
            found.add(header)
    return found | {name for name, count in of_arrays.items() if count >= MIN_ARRAY_FIELDS}
