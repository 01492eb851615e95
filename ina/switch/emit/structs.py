"""Structs of generated C: a header's, those that are indexed, an element of registers."""

from __future__ import annotations

from ina.switch.emit.c_types import container
from ina.switch.emit.layout import GroupLayout, Layout, TypeLayout
from ina.switch.emit.writer import Writer


def emit_struct(layout: TypeLayout, out: Writer) -> None:
    """Of a header type, or of a metadata instance."""
    with out.block("typedef struct", tail=f"}} {layout.c_name};"):
        for declaration in layout.declarations:
            out.line(declaration)
        if not layout.declarations:
            out.line("uint8_t empty;")
    out.line()


def emit_arrays(layout: Layout, out: Writer) -> None:
    """``packet_arrays``: headers that are indexed, and stacks."""
    program, plan = layout.program, layout.plan
    out.line(
        "/* Headers that are indexed: apart, so that the rest can live in machine registers. */"
    )
    with out.block("typedef struct", tail="} packet_arrays;"):
        out.line("uint8_t unused;")
        for name, header in program.headers.items():
            if not header.metadata and not header.stack and name in plan.apart:
                c_name = layout.name(name)
                out.line(f"{layout.types[header.type.name].c_name} {c_name};")
        for name, stack in program.stacks.items():
            c_name, size = layout.name(name), len(stack.members)
            out.line(f"{layout.types[stack.type.name].c_name} {c_name}[{size}];")
            out.line(f"uint8_t {c_name}_valid[{size}];")
            out.line(f"uint32_t {c_name}_next;")
    out.line()


def emit_members(layout: Layout, out: Writer, place: str) -> None:
    """Metadata, and headers that are not indexed, of ``packet``. ``place``: declares what says
    where a header stood, by its name."""
    for name, header in layout.program.headers.items():
        if header.metadata:
            out.line(f"{layout.metadata[name].c_name} {layout.name(name)};")
        elif not header.stack:
            c_name = layout.name(name)
            if name not in layout.plan.apart:
                out.line(f"{layout.types[header.type.name].c_name} {c_name};")
            out.line(f"uint8_t {c_name}_valid;")
            out.line(place.format(f"{c_name}_wire"))


def emit_group(layout: Layout, group: GroupLayout, out: Writer, first: str = "") -> None:
    """An element of a group of registers; ``first``: a declaration before theirs."""
    count = sum(len(run) for run in group.group.runs)
    out.line(f"/* {count} register(s) that are indexed alike. */")
    with out.block("typedef struct", tail=f"}} {group.c_name}_slot;"):
        if first:
            out.line(first)
        for [name] in (run for run in group.group.runs if run not in group.arrays):
            c_type = container(layout.register_bits[name])
            out.line(f"{c_type} {group.members[name]}; // {name}")
        for run, member in group.arrays.items():
            c_type = container(layout.register_bits[run[0]])
            out.line(f"_Alignas(64) {c_type} {member}[{len(run)}]; // {run[0]} ...")
    out.line()
