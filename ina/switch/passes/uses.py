"""What a program does with each header type: which fields it reads, which ones it can change.

An extracted header remembers where it stood in the packet. Sending it copies those bytes and stores
only the fields that the program can have changed; fields that nobody looks at are never unpacked,
and fields that nobody changes are read where they stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ina.switch.ir.data import STANDARD, field_arrays
from ina.switch.ir.expr import ArrayFieldRef, FieldRef
from ina.switch.ir.program import Checksum, Program
from ina.switch.ir.stmt import CopyHeader, CopyStack, SetValid
from ina.switch.ir.walk import all_parts, pipeline_parts, targets, walk

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
    touched, written = _touched(program)
    in_place = _in_place(program, touched, written)
    types = {
        name: TypeUse(frozenset(touched[name]), frozenset(written[name]), frozenset(in_place[name]))
        for name in touched
    }
    mentioned: dict[str, set[str]] = {STANDARD: set(_NEEDED)}
    for node in walk(tuple(all_parts(program))):
        if isinstance(node, FieldRef):
            mentioned.setdefault(node.header, set()).add(node.field)
    named = {header: frozenset(fields) for header, fields in mentioned.items()}
    return Uses(types, named, created_headers(program))


def created_headers(program: Program) -> frozenset[str]:
    """:attr:`Uses.created`."""
    created = set()
    for node in walk(tuple(all_parts(program))):
        if isinstance(node, SetValid) and node.valid:
            created.add(node.header.name)
        elif isinstance(node, CopyHeader):
            created.add(node.target.name)
        elif isinstance(node, CopyStack):
            created.add(node.target)
    return frozenset(created)


def reads_wire(program: Program, checksum: Checksum) -> bool:
    """Whether the checksum can take what the program leaves alone from the packet's own bytes.

    That is so when it is over one extracted header, in the wire's order and 16-bit words.
    """
    name = checksum.target.header
    header = program.headers[name]
    if header.metadata or header.stack or name in created_headers(program):
        return False
    in_parser = {
        target.header
        for state in program.states.values()
        for target in targets(state.body)
        if isinstance(target, FieldRef)
    }
    if name in in_parser:
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


def _touched(program: Program) -> tuple[_Names, _Names]:
    """What is read or written, and what is written."""
    touched: _Names = {header.type.name: set() for header in program.headers.values()}
    written: _Names = {name: set() for name in touched}
    code = (
        *(state.body for state in program.states.values()),
        *(state.keys for state in program.states.values()),
        *pipeline_parts(program, program.ingress),
        *pipeline_parts(program, program.egress),
        *(checksum.condition for checksum in program.checksums if checksum.condition is not None),
        *(c.inputs for c in program.checksums if not reads_wire(program, c)),
        *(checksum.target for checksum in program.checksums),
    )
    updated = [checksum.target for checksum in program.checksums if checksum.update]
    _note(program, touched, walk(code))
    for names in (touched, written):
        _note(program, names, (*targets(code), *updated))
    for stack in program.stacks.values():
        every = {f.name for f in stack.type.fields}
        touched[stack.type.name] = written[stack.type.name] = every
    return touched, written


def _note(program: Program, names: _Names, nodes: Iterable[object]) -> None:
    """Adds the fields among the nodes."""
    for node in nodes:
        if isinstance(node, FieldRef):
            names[program.headers[node.header].type.name].add(node.field)
        elif isinstance(node, ArrayFieldRef):
            header_type = program.headers[node.header].type
            width = header_type.fields[node.first].width_bits
            after = header_type.fields[node.first :]
            names[header_type.name] |= {f.name for f in after if f.width_bits == width}


def _in_place(program: Program, touched: _Names, written: _Names) -> _Names:
    """:attr:`TypeUse.in_place`.

    Their type's headers come from the packet only (never made valid, copied, or in a stack), and
    nobody writes the field. Arrays are unpacked: loops want them aligned and swapped.
    """
    elsewhere = set(created_headers(program))
    for node in walk(tuple(all_parts(program))):
        if isinstance(node, CopyHeader):
            elsewhere.add(node.value.name)
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
