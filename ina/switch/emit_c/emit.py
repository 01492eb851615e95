"""A whole program to one C file."""

from __future__ import annotations

from ina.switch.emit_c.control import emit_control
from ina.switch.emit_c.deparser import emit_checksums, emit_deparser
from ina.switch.emit_c.layout import Layout, TypeLayout, container
from ina.switch.emit_c.packet_path import emit_process
from ina.switch.emit_c.parser import emit_parser
from ina.switch.emit_c.statements import Statements
from ina.switch.emit_c.tables import TableEmitter
from ina.switch.emit_c.writer import Writer
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import Block
from ina.switch.passes.reroll import reroll_program

VERSION = "4"
"""Part of the cache key: change it when the generated code changes for the same program."""


def emit_c(program: Program, digest: str) -> str:
    """The C source of a program; ``digest`` is what the shared object reports as its source."""
    program = reroll_program(program)
    layout = Layout(program)
    out = Writer()
    tables = TableEmitter(layout, out)
    out.line(f"// Generated from {program.name or 'a P4 program'} by ina; do not edit.")
    out.line('#include "ina_pipeline.h"')
    out.line()
    _emit_types(layout, out)
    _emit_state(layout, tables, out)
    tables.specs()
    tables.early_type()
    tables.fixed_type()
    emit_parser(layout, out)
    _emit_block("ingress", program.ingress, tables, out)
    if layout.main_path is not None:
        layout.on_main = True
        parameter = ", const early_entries *const early" if tables.early else ""
        _emit_block("ingress_main", layout.main_ingress, tables, out, parameter)
        layout.on_main = False
    tables.in_egress = True
    parameter = ", const fixed_entries *const fixed" if tables.fixed else ""
    _emit_block("egress", program.egress, tables, out, parameter)
    tables.in_egress = False
    emit_checksums(layout, Statements(layout, out, tables.apply), out)
    most_header_bytes = emit_deparser(layout, out)
    emit_process(layout, tables, out, most_header_bytes)
    emit_control(layout, tables, out, digest)
    return out.text()


def _emit_block(
    name: str, block: Block, tables: TableEmitter, out: Writer, parameter: str = ""
) -> None:
    with out.block(f"INA_INLINE void {name}(state *const S, packet *const p{parameter})"):
        out.line("(void)S;")
        out.line("(void)p;")
        for group in tables.layout.groups:
            out.line(f"{group.name}_slot *const {group.local} = S->{group.name};")
            out.line(f"(void){group.local};")
        tables.to.block(block)
    out.line()


def _emit_struct(layout: TypeLayout, out: Writer) -> None:
    with out.block("typedef struct", tail=f"}} {layout.c_name};"):
        for declaration in layout.declarations:
            out.line(declaration)
        if not layout.declarations:
            out.line("uint8_t empty;")
    out.line()


def _emit_types(layout: Layout, out: Writer) -> None:
    program = layout.program
    in_place = [
        t.type.width_bits // 8 for t in layout.types.values() if layout.in_place[t.type.name]
    ]
    if in_place:
        out.line("/* A header that was not extracted. */")
        out.line(f"static const uint8_t ina_zeros[{max(in_place)}];")
        out.line()
    for type_layout in layout.types.values():
        _emit_struct(type_layout, out)
    for type_layout in layout.metadata.values():
        _emit_struct(type_layout, out)
    out.line(
        "/* Headers that are indexed: apart, so that the rest can live in machine registers. */"
    )
    with out.block("typedef struct", tail="} packet_arrays;"):
        out.line("uint8_t unused;")
        for name, header in program.headers.items():
            if not header.metadata and not header.stack and layout.is_large(name):
                c_name = layout.names.get("header", name)
                out.line(f"{layout.types[header.type.name].c_name} {c_name};")
        for name, stack in program.stacks.items():
            c_name, size = layout.names.get("header", name), len(stack.members)
            out.line(f"{layout.types[stack.type.name].c_name} {c_name}[{size}];")
            out.line(f"uint8_t {c_name}_valid[{size}];")
            out.line(f"uint32_t {c_name}_next;")
    out.line()
    out.line("/* One packet on its way through the pipeline. */")
    with out.block("typedef struct", tail="} packet;"):
        out.line("const uint8_t *data;")
        out.line("uint32_t length;   // bytes received")
        out.line("uint32_t offset;   // bytes that the parser took")
        out.line("uint32_t truncate; // most bytes to send")
        out.line("packet_arrays *arrays;")
        for name, header in program.headers.items():
            if header.metadata:
                out.line(f"{layout.metadata[name].c_name} {layout.names.get('header', name)};")
            elif not header.stack:
                c_name = layout.names.get("header", name)
                if not layout.is_large(name):
                    out.line(f"{layout.types[header.type.name].c_name} {c_name};")
                out.line(f"uint8_t {c_name}_valid;")
                out.line(f"const uint8_t *{c_name}_wire; // its bytes in the packet, or NULL")
                if name in layout.late_arrays:
                    width = layout.late_arrays[name].array.width_bits
                    out.line(f"const uint{width}_t *{c_name}_kept_in; // its values, or NULL")
    out.line()


def _emit_state(layout: Layout, tables: TableEmitter, out: Writer) -> None:
    widths = {register.name: register.width_bits for register in layout.program.registers}
    for group in layout.groups:
        out.line(f"/* {len(group.members)} register(s) that are indexed alike. */")
        with out.block("typedef struct", tail=f"}} {group.name}_slot;"):
            for name in group.scalars:
                out.line(f"{container(widths[name])} {group.members[name]}; // {name}")
            for array in group.arrays:
                ctype, member = container(widths[array[0]]), group.array_names[array]
                out.line(f"_Alignas(64) {ctype} {member}[{len(array)}]; // {array[0]} ...")
        out.line()
    with out.block("typedef struct", tail="} state;"):
        out.line("void *memory; // what holds all of this")
        out.line("pthread_mutex_t mutex;")
        out.line("uint32_t most_replicas;")
        out.line("ina_group *groups;")
        out.line("uint8_t *gathered; // a frame that came in two parts")
        for info in tables.tables.values():
            out.line(f"ina_table {info.c_name};")
        for counter in layout.program.counters:
            name = layout.names.get("counter", counter.name)
            out.line(f"_Alignas(16) ina_counter {name}[{max(counter.size, 1)}];")
        # At constant places: a lookup loads no pointers.
        for info in tables.tables.values():
            slots = f"{info.c_name}_slots[({info.capacity} + 1) * {info.slot_bytes}]"
            out.line(f"_Alignas(64) uint8_t {slots};")
            out.line(f"_Alignas(64) uint32_t {info.c_name}_index[{info.index_words}];")
        for group in layout.groups:
            out.line(f"_Alignas(64) {group.name}_slot {group.name}[{max(group.size, 1)}];")
    out.line()
