"""What a program does with each header type: which fields it reads, which ones it can change.

An extracted header remembers where it stood in the packet. Sending it copies those bytes and stores
only the fields that the program can have changed; fields that nobody looks at are never unpacked,
and fields that nobody changes are read where they stand.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ina.switch.ir.data import field_arrays
from ina.switch.ir.expr import ArrayFieldRef, FieldRef, StackFieldRef
from ina.switch.ir.program import Checksum, Program
from ina.switch.ir.stmt import CopyHeader, CopyStack, SetValid
from ina.switch.ir.walk import all_parts, pipeline_parts, targets, walk


@dataclass
class HeaderUse:
    """Use of a header type, over all its instances."""

    touched: set[str] = field(default_factory=set)  # read or written
    written: set[str] = field(default_factory=set)


def created_headers(program: Program) -> set[str]:
    """Headers that can become valid without being extracted: made valid, or copied to."""
    created = set()
    for node in walk(tuple(all_parts(program))):
        if isinstance(node, SetValid) and node.valid:
            created.add(node.header.name)
        elif isinstance(node, CopyHeader):
            created.add(node.target.name)
        elif isinstance(node, CopyStack):
            created.add(node.target)
    return created


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


def header_uses(program: Program) -> dict[str, HeaderUse]:
    """By header type. Types of stacks count as touched and written throughout."""
    uses = {header.type.name: HeaderUse() for header in program.headers.values()}
    code = (
        *(state.body for state in program.states.values()),
        *(state.keys for state in program.states.values()),
        *pipeline_parts(program, program.ingress),
        *pipeline_parts(program, program.egress),
        *(checksum.condition for checksum in program.checksums if checksum.condition is not None),
        *(c.inputs for c in program.checksums if not reads_wire(program, c)),
        *(checksum.target for checksum in program.checksums),
    )
    for node in walk(code):
        _note(program, uses, node, writing=False)
    for target in targets(code):
        _note(program, uses, target, writing=True)
    for checksum in program.checksums:
        if checksum.update:
            _note(program, uses, checksum.target, writing=True)
    for stack in program.stacks.values():
        names = {f.name for f in stack.type.fields}
        uses[stack.type.name] = HeaderUse(names, names)
    return uses


def in_place_fields(program: Program, uses: dict[str, HeaderUse]) -> dict[str, set[str]]:
    """By header type: the fields that are read from the packet's own bytes, never unpacked.

    Their type's headers come from the packet only (never made valid, copied, or in a stack), and
    nobody writes the field. Arrays are unpacked: loops want them aligned and swapped.
    """
    elsewhere = created_headers(program)
    for node in walk(tuple(all_parts(program))):
        if isinstance(node, CopyHeader):
            elsewhere.add(node.value.name)
    kept: dict[str, set[str]] = {}
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
        use = uses[header_type.name]
        fields = {
            field.name
            for field in header_type.fields
            if field.name in use.touched
            and field.name not in use.written | in_array
            and field.offset_bits % 8 + field.width_bits <= 64
        }
        kept[header_type.name] = kept.get(header_type.name, fields) & fields
    return kept


def _note(program: Program, uses: dict[str, HeaderUse], node: object, *, writing: bool) -> None:
    if isinstance(node, FieldRef):
        use = uses[program.headers[node.header].type.name]
        names = {node.field}
    elif isinstance(node, ArrayFieldRef):
        header_type = program.headers[node.header].type
        use = uses[header_type.name]
        width = header_type.fields[node.first].width_bits
        names = {f.name for f in header_type.fields[node.first :] if f.width_bits == width}
    elif isinstance(node, StackFieldRef):
        return
    else:
        return
    use.touched |= names
    if writing:
        use.written |= names
