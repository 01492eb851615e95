"""A plan to the C of XDP programs: ingress, at each interface, and egress, of each copy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

from ina.switch.emit.layout import Layout
from ina.switch.emit.structs import emit_arrays, emit_group, emit_struct
from ina.switch.emit.where import GENERAL
from ina.switch.emit.writer import Writer
from ina.switch.emit_ebpf.carry import Carry
from ina.switch.emit_ebpf.copied import emit_copied, emit_copied_packet
from ina.switch.emit_ebpf.main_path import (
    InFrame,
    emit_frame_packet,
    emit_in_frame,
    headers_in_frame,
)
from ina.switch.emit_ebpf.memory import COPIED, IN_FRAME, Maps, counts, elements, entries, hits
from ina.switch.emit_ebpf.placed import entry_words
from ina.switch.emit_ebpf.programs import emit_programs
from ina.switch.emit_ebpf.statements import BpfStatements
from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.stmt import Block
from ina.switch.passes.carried import carried
from ina.switch.passes.leaving import with_leaving
from ina.switch.passes.plan import Plan
from ina.switch.passes.sections import resident_tables, with_sections
from ina.switch.passes.tables import Lookup, TablePlan


@dataclass(frozen=True)
class EbpfSource:
    """The C, and what whoever fills its maps has to know of it."""

    text: str
    layout: Layout
    memory: Maps
    carry: Carry


def emit_ebpf(plan: Plan) -> EbpfSource:
    """Raises UnsupportedProgramError."""
    if plan.program.turns:
        what = "clones, resubmission, recirculation or digests"
        raise UnsupportedProgramError(what)
    what_is_carried, headers = carried(plan.program), headers_in_frame(plan)
    plan = _sectioned(plan)
    memory = Maps(plan.tables, _resident(plan))
    layout = Layout(plan, memory, COPIED)
    carry = Carry.of(layout, what_is_carried)
    in_frame = Layout(plan, memory, IN_FRAME)
    frame = InFrame(in_frame, plan.main, headers) if plan.main and headers else None
    out = Writer()
    out.line(f"// Generated from {plan.program.name or 'a P4 program'} by ina; do not edit.")
    out.line('#include "ina_placed.h"')
    out.line()
    _emit_types(layout, out)
    carry.emit_type(out)
    _emit_maps(layout, memory, out)
    numbers = count()
    emit_copied(BpfStatements(layout, out, GENERAL, numbers), carry)
    if frame is not None:
        emit_frame_packet(in_frame, out)
        emit_in_frame(BpfStatements(in_frame, out, GENERAL, numbers), frame, carry)
    emit_programs(carry, out, has_main=frame is not None)
    out.line('char ina_licence[] SEC("license") = "Apache-2.0"; // no helper here wants the GPL')
    return EbpfSource(out.text(), layout, memory, carry)


def _sectioned(plan: Plan) -> Plan:
    """Registers in critical sections, also those of actions."""
    program = plan.program

    def sectioned(block: Block) -> Block:
        return with_sections(program, block, plan.groups)

    tables = tuple(
        replace(
            table,
            actions=tuple(replace(it, body=sectioned(it.body)) for it in table.actions),
        )
        for table in plan.tables
    )
    main = plan.main
    if main is not None:
        main = replace(main, ingress=with_leaving(program, sectioned(main.ingress)))
    ingress, egress = sectioned(program.ingress), sectioned(program.egress)
    program = replace(program, ingress=ingress, egress=egress)
    return replace(plan, program=program, tables=tables, main=main)


def _resident(plan: Plan) -> frozenset[str]:
    actions = tuple(action.body for table in plan.tables for action in table.actions)
    main = () if plan.main is None else plan.main.ingress
    return resident_tables(plan.program.ingress, plan.program.egress, main, *actions)


def _emit_types(layout: Layout, out: Writer) -> None:
    for each in (*layout.types.values(), *layout.metadata.values()):
        emit_struct(each, out)
    emit_arrays(layout, out)
    emit_copied_packet(layout, out)
    for group in layout.groups:
        emit_group(layout, group, out, "struct bpf_spin_lock lock;")


def _emit_maps(layout: Layout, memory: Maps, out: Writer) -> None:
    room = max(memory.default_words, 1)
    out.line("INA_MAP_OF(ina_packets, MAP_PERCPU_ARRAY, packet, 1);")
    out.line(f'volatile uint64_t ina_defaults[{room}] SEC(".data.defaults");')
    words = sum(table.words for table in memory.placed.values())
    if words:
        out.line(f'volatile uint64_t ina_tables[{words}] SEC(".data.tables");')
    for plan in layout.plan.tables:
        name = layout.table(plan)
        if plan.key_words and plan.table.name not in memory.placed:
            _emit_table(plan, entries(name), out)
        if plan.table.has_direct_counter:
            room = plan.table.max_size + 1  # the default entry's is the last one
            out.line(f"INA_MAP({hits(name)}, MAP_PERCPU_ARRAY, 4, 16, {room}, 0);")
    for counter in layout.program.counters:
        name, room = counts(layout.counter(counter.name)), max(counter.size, 1)
        out.line(f"INA_MAP({name}, MAP_PERCPU_ARRAY, 4, 16, {room}, 0);")
    for group in layout.groups:
        room = max(group.group.size, 1)
        out.line(f"INA_MAP_OF({elements(group.c_name)}, MAP_ARRAY, {group.c_name}_slot, {room});")
    out.line()


def _emit_table(plan: TablePlan, name: str, out: Writer) -> None:
    table = plan.table
    value, room = 8 * entry_words(plan), max(table.max_size, 1)
    if plan.lookup is Lookup.LPM:
        key = 4 + table.keys[0].width_bits // 8
        head = f"{name}, MAP_LPM_TRIE, {key}, {value}, {room}, MAP_NO_PREALLOC"
    else:
        head = f"{name}, MAP_HASH, {8 * plan.key_words}, {value}, {room}, 0"
    out.line(f"INA_MAP({head}); // {table.name}", table.source)
