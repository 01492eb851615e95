"""A whole program to one C file."""

from __future__ import annotations

from itertools import count

from ina.switch.emit.checksums import emit_update, emit_verify
from ina.switch.emit.crcs import emit_members_of_crcs
from ina.switch.emit.early import early_tables, emit_early_type
from ina.switch.emit.frame import IN_PLACE
from ina.switch.emit.layout import Layout
from ina.switch.emit.parser import emit_main_parser, emit_parser
from ina.switch.emit.statements import Statements
from ina.switch.emit.structs import emit_arrays, emit_group, emit_members, emit_struct
from ina.switch.emit.where import GENERAL, ON_MAIN, Where
from ina.switch.emit.writer import Writer
from ina.switch.emit_c.control import emit_control
from ina.switch.emit_c.deparser import emit_deparser
from ina.switch.emit_c.memory import StateBlock
from ina.switch.emit_c.packet_path import emit_once, emit_process
from ina.switch.emit_c.tables import (
    emit_fixed_type,
    emit_specs,
    fixed_tables,
    index_words,
    slot_bytes,
)
from ina.switch.emit_c.turns import emit_turn_types, emit_turns
from ina.switch.ir.stmt import Block
from ina.switch.passes.plan import Plan

VERSION = "8"
"""Part of the cache key: change it when the generated code changes for the same program."""


def emit_c(plan: Plan, digest: str) -> str:
    """The C source of a program; ``digest`` is what the shared object reports as its source."""
    layout = Layout(plan, StateBlock(), IN_PLACE)
    out = Writer()
    out.line(f"// Generated from {plan.program.name or 'a P4 program'} by ina; do not edit.")
    out.line('#include "ina_pipeline.h"')
    out.line()
    _emit_types(layout, out)
    emit_turn_types(layout, out)
    _emit_state(layout, out)
    emit_specs(layout, out)
    emit_early_type(layout, out)
    emit_fixed_type(layout, out)
    general = Statements(layout, out, GENERAL, count())
    emit_parser(general)
    if plan.main is not None:
        emit_main_parser(general, plan.main)
    _emit_pipelines(general)
    emit_verify(general)
    if plan.main is not None:
        emit_verify(general.at(ON_MAIN))
    emit_update(general)
    most_header_bytes = emit_deparser(layout, out)
    emit_process(general, most_header_bytes, emit_turns if plan.program.turns else emit_once)
    emit_control(layout, out, digest)
    return out.text()


def _emit_pipelines(general: Statements) -> None:
    layout = general.layout
    plan, main = layout.plan, layout.plan.main
    ingress = general.at(Where(loops=plan.loops))
    _emit_block("ingress", plan.program.ingress, ingress)
    if main is not None:
        where = Where(late=True, late_arrays=True, loops=main.loops, early=main.early)
        on_main = general.at(where)
        parameter = ", const early_entries *const early" if early_tables(layout) else ""
        _emit_block("ingress_main", main.ingress, on_main, parameter)
    egress = general.at(Where(loops=plan.loops, fixed=True))
    parameter = ", const fixed_entries *const fixed" if fixed_tables(layout) else ""
    _emit_block("egress", plan.program.egress, egress, parameter)
    if main is not None and main.hashes_late_arrays:
        where = Where(late_arrays=True, loops=plan.loops, fixed=True)
        _emit_block("egress_main", plan.program.egress, general.at(where), parameter)


def _emit_block(name: str, block: Block, to: Statements, parameter: str = "") -> None:
    out = to.out
    with out.block(f"INA_INLINE void {name}(state *const S, packet *const p{parameter})"):
        out.line("(void)S;")
        out.line("(void)p;")
        for group in to.layout.groups:
            local = StateBlock.local(group.c_name)
            out.line(f"{group.c_name}_slot *const {local} = S->{group.c_name};")
            out.line(f"(void){local};")
        to.block(block)
    out.line()


def _emit_types(layout: Layout, out: Writer) -> None:
    plan = layout.plan
    read_in_place = (t.type for name, t in plan.types.items() if plan.uses[name].in_place)
    longest = max((header_type.width_bits // 8 for header_type in read_in_place), default=0)
    if longest:
        out.line("/* A header that was not extracted. */")
        out.line(f"static const uint8_t ina_zeros[{longest}];")
        out.line()
    for type_layout in layout.types.values():
        emit_struct(type_layout, out)
    for type_layout in layout.metadata.values():
        emit_struct(type_layout, out)
    emit_arrays(layout, out)
    out.line("/* One packet on its way through the pipeline. */")
    with out.block("typedef struct", tail="} packet;"):
        out.line("const uint8_t *data;")
        out.line("uint32_t length;   // bytes received")
        out.line("uint32_t offset;   // bytes that the parser took")
        out.line("uint32_t truncate; // most bytes to send")
        if plan.counts_length:
            out.line("uint32_t told_length; // to egress")
        out.line("packet_arrays *arrays;")
        emit_members(layout, out, "const uint8_t *{}; // its bytes in the packet, or NULL")
        for name, late in (plan.main.late_arrays if plan.main else {}).items():
            width, c_name = late.array.width_bits, layout.name(name)
            out.line(f"const uint{width}_t *{c_name}_kept_in; // its values, or NULL")
        emit_members_of_crcs(layout, out)
    out.line()


def _emit_state(layout: Layout, out: Writer) -> None:
    for group in layout.groups:
        emit_group(layout, group, out)
    with out.block("typedef struct", tail="} state;"):
        out.line("void *memory; // what holds all of this")
        out.line("pthread_mutex_t mutex;")
        out.line("uint32_t most_replicas;")
        out.line("ina_group *groups;")
        if layout.program.turns:
            out.line("ina_clones clones;")
            out.line("turn *turns;")
            out.line("ina_digests digests;")
        out.line("uint8_t *gathered; // a frame that came in two parts")
        for table in layout.plan.tables:
            out.line(f"ina_table {layout.table(table)};")
        for counter in layout.program.counters:
            name = layout.counter(counter.name)
            out.line(f"_Alignas(16) ina_counter {name}[{max(counter.size, 1)}];")
        # At constant places: a lookup loads no pointers.
        for table in layout.plan.tables:
            name = layout.table(table)
            slots = f"{name}_slots[({table.table.max_size} + 1) * {slot_bytes(table)}]"
            out.line(f"_Alignas(64) uint8_t {slots};")
            out.line(f"_Alignas(64) uint32_t {name}_index[{index_words(table)}];")
        for group in layout.groups:
            out.line(
                f"_Alignas(64) {group.c_name}_slot {group.c_name}[{max(group.group.size, 1)}];"
            )
    out.line()
