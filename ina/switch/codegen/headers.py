"""What a program does with each header type: which fields it reads, which ones it can change.

An extracted header remembers where it stood in the packet. Sending it copies those bytes and stores only
the fields that the program can have changed; fields that nobody looks at are never unpacked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ina.switch.ir.expr import ArrayFieldRef, FieldRef, StackFieldRef
from ina.switch.ir.program import Program
from ina.switch.ir.walk import all_parts, targets, walk


@dataclass
class HeaderUse:
    """Use of a header type, over all its instances."""

    touched: set[str] = field(default_factory=set)  # read or written
    written: set[str] = field(default_factory=set)


def header_uses(program: Program) -> dict[str, HeaderUse]:
    """By header type. Types of stacks count as touched and written throughout."""
    uses = {header.type.name: HeaderUse() for header in program.headers.values()}
    parts = tuple(all_parts(program))
    for node in walk(parts):
        _note(program, uses, node, writing=False)
    for target in targets(parts):
        _note(program, uses, target, writing=True)
    for checksum in program.checksums:
        if checksum.update:
            _note(program, uses, checksum.target, writing=True)
    for stack in program.stacks.values():
        names = {f.name for f in stack.type.fields}
        uses[stack.type.name] = HeaderUse(names, names)
    return uses


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
