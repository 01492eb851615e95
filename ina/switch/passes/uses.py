"""What a program does with each header type: which fields it reads, which ones it can change.

An extracted header remembers where it stood in the packet. Sending it copies those bytes and stores
only the fields that the program can have changed; fields that nobody looks at are never unpacked,
and fields that nobody changes are read where they stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from ina.switch.ir.data import STANDARD, field_arrays
from ina.switch.ir.expr import FieldRef
from ina.switch.ir.program import Checksum, Program
from ina.switch.passes.effect_places import Effects, Kind
from ina.switch.passes.effects import (
    effects,
    effects_of_copies,
    effects_of_parser,
    verifications,
)

_NEEDED = {"egress_spec", "mcast_grp"}
"""Fields of standard_metadata that say where a packet goes, also if the program is silent."""


@dataclass(frozen=True)
class TypeUse:
    """Use of a header type, over all its instances."""

    touched: frozenset[str]  # read or written
    written: frozenset[str]
    in_place: frozenset[str]
    """Read from the packet's own bytes, never unpacked."""


@dataclass(frozen=True)
class Uses:
    """What a program does with its fields."""

    types: Mapping[str, TypeUse]
    mentioned: Mapping[str, frozenset[str]]
    """By header or metadata instance: the fields that the program names."""
    created: frozenset[str]
    """Headers that can become valid without being extracted: made valid, or copied to."""


def find_uses(program: Program) -> Uses:
    """By header type. Types of stacks count as touched and written throughout."""
    done = _everything(program)
    created = done.writes.names(Kind.WIRE)
    touched, written = _touched(program, created)
    in_place = _in_place(program, done, touched, written)
    types = {
        name: TypeUse(frozenset(touched[name]), frozenset(written[name]), frozenset(in_place[name]))
        for name in touched
    }
    mentioned: dict[str, set[str]] = {STANDARD: set(_NEEDED)}
    for header, field in done.reads.fields() | done.writes.fields():
        mentioned.setdefault(header, set()).add(field)
    named = {header: frozenset(fields) for header, fields in mentioned.items()}
    return Uses(types, named, created)


def _everything(program: Program) -> Effects:
    """Of the program, but for what the parser extracts."""
    keys = tuple(state.keys for state in program.states.values())
    ingress = effects(program, keys, verifications(program), program.ingress)
    return effects_of_parser(program).then(ingress).then(effects_of_copies(program))


def reads_wire(program: Program, created: AbstractSet[str], checksum: Checksum) -> bool:
    """Whether the checksum can take what the program leaves alone from the packet's own bytes.

    That is so when it is over one extracted header, in the wire's order and 16-bit words.
    """
    name = checksum.target.header
    header = program.headers[name]
    if header.metadata or header.stack or name in created:
        return False
    if name in {header for header, _ in effects_of_parser(program).writes.fields()}:
        return False
    names = [item.value.field for item in checksum.inputs if isinstance(item.value, FieldRef)]
    if len(names) != len(set(names)):
        return False
    position = 0  # of the checksum's input, modulo 16 that of the wire
    for item in checksum.inputs:
        if not isinstance(item.value, FieldRef) or item.value.header != name:
            return False
        field = header.type.by_name[item.value.field]
        if (field.offset_bits - position) % 16 or field.width_bits > 48:
            return False
        position += item.width_bits
    return position % 16 == 0


_Names = dict[str, set[str]]
"""Field names by header type."""


def _touched(program: Program, created: AbstractSet[str]) -> tuple[_Names, _Names]:
    """What is read or written, and what is written."""
    touched: _Names = {header.type.name: set() for header in program.headers.values()}
    written: _Names = {name: set() for name in touched}
    over_wire = [
        replace(c, inputs=()) if reads_wire(program, created, c) else c for c in program.checksums
    ]
    done = _everything(replace(program, checksums=tuple(over_wire)))
    for names, fields in (
        (touched, done.reads.fields() | done.writes.fields()),
        (written, done.writes.fields()),
    ):
        for header, field in fields:
            names[program.headers[header].type.name].add(field)
    for checksum in program.checksums:
        touched[program.headers[checksum.target.header].type.name].add(checksum.target.field)
    for stack in program.stacks.values():
        every = {f.name for f in stack.type.fields}
        touched[stack.type.name] = written[stack.type.name] = every
    return touched, written


def _in_place(program: Program, done: Effects, touched: _Names, written: _Names) -> _Names:
    """:attr:`TypeUse.in_place`.

    Their type's headers come from the packet only (never made valid, copied, or in a stack), and
    nobody writes the field. Arrays are unpacked: loops want them aligned and swapped.
    """
    elsewhere = done.writes.names(Kind.WIRE) | done.whole
    kept: _Names = {}
    for header in program.headers.values():
        header_type = header.type
        if header.metadata or header.stack or header.name in elsewhere:
            kept[header_type.name] = set()
            continue
        in_array = {
            field.name
            for array in field_arrays(header_type)
            for field in header_type.fields[array.first : array.first + array.count]
        }
        fields = {
            field.name
            for field in header_type.fields
            if field.name in touched[header_type.name]
            and field.name not in written[header_type.name] | in_array
            and field.offset_bits % 8 + field.width_bits <= 64
        }
        kept[header_type.name] = kept.get(header_type.name, fields) & fields
    return kept
