"""A plan to the C of two XDP programs: ingress, at each interface, and egress, of each copy.

All packets take the general code. A frame is copied to memory of the processor's own, the program
runs on it there, and its headers are written back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import count

from ina.switch.emit.arrival import parse_any
from ina.switch.emit.checksums import emit_checksums, emit_wire_sums
from ina.switch.emit.layout import Layout
from ina.switch.emit.parser import emit_load, emit_parser
from ina.switch.emit.standard import forget_metadata, set_standard
from ina.switch.emit.store import copy_unwritten, emit_store
from ina.switch.emit.structs import emit_arrays, emit_group, emit_members, emit_struct
from ina.switch.emit.where import GENERAL, Where
from ina.switch.emit.writer import Writer
from ina.switch.emit_ebpf.carry import Carry
from ina.switch.emit_ebpf.memory import COPIED, Maps, entry_words, hits
from ina.switch.emit_ebpf.statements import BpfStatements
from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.stmt import Block
from ina.switch.passes.carried import carried
from ina.switch.passes.plan import Plan
from ina.switch.passes.sections import with_sections
from ina.switch.passes.tables import Lookup, TablePlan

MOST_HEADER_BYTES = 2047
"""INA_HEADERS_ROOM of runtime/ina_bpf.h: what is written of one frame."""
_WIDE = re.compile(r"ina_\w*128|ina_(load|store)_bits")
"""Of the runtime's: what works with 128 bits, or bit by bit."""


@dataclass(frozen=True)
class EbpfSource:
    """The C, and what whoever fills its maps has to know of it."""

    text: str
    layout: Layout
    memory: Maps
    carry: Carry


def emit_ebpf(plan: Plan) -> EbpfSource:
    """``plan``: without a main path. Raises UnsupportedProgramError."""
    if plan.program.turns:
        what = "clones, resubmission, recirculation or digests"
        raise UnsupportedProgramError(what)
    what_is_carried = carried(plan.program)
    plan = _sectioned(plan)
    memory = Maps(plan.tables)
    layout = Layout(plan, memory, COPIED)
    carry = Carry.of(layout, what_is_carried)
    out = Writer()
    out.line(f"// Generated from {plan.program.name or 'a P4 program'} by ina; do not edit.")
    out.line('#include "ina_bpf.h"')
    out.line()
    _emit_types(layout, out)
    carry.emit_type(out)
    _emit_maps(layout, memory, out)
    general = BpfStatements(layout, out, GENERAL, count())
    emit_parser(general)
    for name, block in (("ingress", plan.program.ingress), ("egress", plan.program.egress)):
        with out.block(f"INA_INLINE void {name}(packet *const p)"):
            out.line("(void)p;")
            general.at(Where(loops=plan.loops)).block(block)
        out.line()
    emit_checksums(general)
    _emit_deparser(layout, out)
    _emit_forget(layout, out)
    _emit_ingress(layout, carry, out)
    _emit_egress(layout, carry, out)
    out.line('char ina_licence[] SEC("license") = "Apache-2.0"; // no helper here wants the GPL')
    _check_width(out)
    return EbpfSource(out.text(), layout, memory, carry)


def _check_width(out: Writer) -> None:
    """The kernel's machine has 64 bits, and no library for more."""
    wide = [line for line in out.lines if _WIDE.search(line.partition(" // ")[0])]
    if wide:
        places = (line.partition(" // ")[2] for line in wide)
        where = next((place for place in places if re.fullmatch(r"\S+:\d+", place)), "")
        raise UnsupportedProgramError("a value of more than 64 bits, or astride", where)


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
    ingress, egress = sectioned(program.ingress), sectioned(program.egress)
    return replace(plan, program=replace(program, ingress=ingress, egress=egress), tables=tables)


def _emit_types(layout: Layout, out: Writer) -> None:
    plan = layout.plan
    for each in (*layout.types.values(), *layout.metadata.values()):
        emit_struct(each, out)
    emit_arrays(layout, out)
    out.line("/* One packet on its way, and the room for it: each processor has one. */")
    with out.block("typedef struct", tail="} packet;"):
        out.line("uint32_t length; // bytes received")
        out.line("uint32_t offset; // bytes of its headers as they came")
        if plan.counts_length:
            out.line("uint32_t told_length; // to egress")
        emit_members(layout, out, "uint32_t {}; // its place")
        out.line("packet_arrays arrays;")
        out.line("uint8_t in[2 * INA_ROOM + INA_LONGEST_HEADER]; // a frame, then zeros")
        out.line("uint8_t out[INA_HEADERS_ROOM + INA_LONGEST_HEADER];")
    out.line()
    with out.block("INA_INLINE const uint8_t *ina_at(const packet *const p, uint32_t place)"):
        out.line("return p->in + (place & (2 * INA_ROOM - 1));")
    out.line()
    for group in layout.groups:
        emit_group(layout, group, out, "struct bpf_spin_lock lock;")


def _emit_maps(layout: Layout, memory: Maps, out: Writer) -> None:
    room = max(memory.default_words, 1)
    out.line("INA_MAP_OF(ina_packets, MAP_PERCPU_ARRAY, packet, 1);")
    out.line(f'volatile uint64_t ina_defaults[{room}] SEC(".data.defaults");')
    for plan in layout.plan.tables:
        name = layout.table(plan)
        if plan.key_words:
            _emit_table(plan, name, out)
        if plan.table.has_direct_counter:
            room = plan.table.max_size + 1  # the default entry's is the last one
            out.line(f"INA_MAP({hits(name)}, MAP_PERCPU_ARRAY, 4, 16, {room}, 0);")
    for counter in layout.program.counters:
        room = max(counter.size, 1)
        out.line(f"INA_MAP({layout.counter(counter.name)}, MAP_PERCPU_ARRAY, 4, 16, {room}, 0);")
    for group in layout.groups:
        room = max(group.group.size, 1)
        out.line(f"INA_MAP_OF({group.c_name}, MAP_ARRAY, {group.c_name}_slot, {room});")
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


def _emit_deparser(layout: Layout, out: Writer) -> None:
    """``deparse``: valid headers to ``p->out``; returns how many bytes they are."""
    program = layout.program
    most = sum(program.headers[name].type.width_bits // 8 for name in program.deparse)
    if most > MOST_HEADER_BYTES:
        raise UnsupportedProgramError(f"headers of {most} bytes")
    with out.block("INA_INLINE uint32_t deparse(packet *const p)"):
        out.line("uint32_t written = 0;")
        for name in program.deparse:
            header_type = program.headers[name].type
            types = layout.types[header_type.name]
            with out.block(f"if ({layout.valid(name)})"):
                out.line("uint8_t *const at = p->out + (written & (INA_HEADERS_ROOM - 1));")
                if program.headers[name].stack:
                    emit_store(types, layout.header(name), out)
                else:
                    wire = layout.wire(name)
                    written = layout.plan.uses[header_type.name].written
                    with out.block(f"if ({layout.place(name)} != INA_NOWHERE)"):
                        copy_unwritten(types, wire, written, out)
                        emit_store(types, layout.header(name), out, written, wire)
                    with out.block("else"):
                        emit_store(types, layout.header(name), out)
                out.line(f"written += {header_type.width_bits // 8};")
        out.line("return written;")
    out.line()


def _emit_forget(layout: Layout, out: Writer) -> None:
    """``forget_all``: of a packet nothing is known but its bytes."""
    with out.block("INA_INLINE void forget_all(packet *const p)"):
        for name, header in layout.program.headers.items():
            if not header.metadata and not header.stack:
                out.line(f"{layout.valid(name)} = 0;")
                out.line(f"{layout.place(name)} = {layout.place_before(name)};")
                if name not in layout.plan.apart:
                    out.line(f"INA_CLEAR({layout.header(name)});")
        for name in layout.program.stacks:
            path = layout.stack(name)
            out.line(f"memset({path}, 0, sizeof {path});")
            out.line(f"memset({path}_valid, 0, sizeof {path}_valid);")
            out.line(f"{path}_next = 0;")
        forget_metadata(layout, out)
    out.line()


def _emit_receive(out: Writer) -> None:
    """``p`` and ``size``: the frame is there."""
    out.line("const uint32_t zero = 0;")
    out.line("packet *const p = bpf_map_lookup_elem(&ina_packets, &zero);")
    out.line("if (!p) return XDP_ABORTED;")
    out.line("uint64_t size = bpf_xdp_get_buff_len(ctx);")
    out.line("INA_ONE_REGISTER(size);")
    out.line("if (size == 0 || size > INA_ROOM) return XDP_DROP;")
    out.line("if (bpf_xdp_load_bytes(ctx, 0, p->in, (uint32_t)size)) return XDP_ABORTED;")
    out.line("forget_all(p);")


def _emit_put(out: Writer) -> None:
    sizes = "written, p->offset, (uint32_t)size"
    out.line(f"if (!ina_put_headers(ctx, p->out, p->in, {sizes})) return XDP_ABORTED;")


def _emit_ingress(layout: Layout, carry: Carry, out: Writer) -> None:
    with out.block('SEC("xdp") int ina_ingress(struct xdp_md *const ctx)'):
        out.line("const uint32_t interface = ctx->ingress_ifindex;")
        out.line("const uint32_t *const from = bpf_map_lookup_elem(&ina_ports, &interface);")
        out.line("if (!from) return XDP_PASS; // an interface that is no port")
        out.line("const uint32_t port = *from;")
        _emit_receive(out)
        out.line("p->length = (uint32_t)size;")
        if layout.plan.counts_length:
            out.line("p->told_length = p->length;")
        set_standard(layout, out, "ingress_port", "port")
        set_standard(layout, out, "packet_length", "p->length")
        set_standard(layout, out, "ingress_global_timestamp", "bpf_ktime_get_ns() / 1000")
        parse_any(layout, out)
        out.line("ingress(p);")
        group, spec = layout.standard("mcast_grp"), layout.standard("egress_spec")
        out.line(f"const uint32_t group = {group or 0};")
        out.line(f"const uint32_t to = group ? group : {spec or 0};")
        out.line("if (!group && to == INA_DROP_PORT) return XDP_DROP;")
        kind = "group ? INA_INSTANCE_REPLICATION : INA_INSTANCE_NORMAL"
        set_standard(layout, out, "instance_type", kind)
        out.line("const uint32_t written = deparse(p);")
        _emit_put(out)
        out.line("if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(carry))) return XDP_ABORTED;")
        out.line("carry *const c = (carry *)(long)ctx->data_meta;")
        out.line("if ((void *)(c + 1) > (void *)(long)ctx->data) return XDP_ABORTED;")
        out.line("c->to = (uint16_t)to;")
        out.line("c->is_group = group != 0;")
        out.line("c->frame = group ? ina_next_frame() : 0;")
        carry.emit_save(layout, out)
        out.line("return ina_send(ctx, group, to);")
    out.line()


def _emit_egress(layout: Layout, carry: Carry, out: Writer) -> None:
    parameters = "struct xdp_md *const ctx, const uint32_t port, const uint32_t rid"
    with out.block(f"INA_INLINE int leave({parameters})"):
        _emit_receive(out)
        out.line("const carry *const c = (const carry *)(long)ctx->data_meta;")
        out.line("if ((void *)(c + 1) > (void *)(long)ctx->data) return XDP_ABORTED;")
        carry.emit_restore(layout, out)
        _emit_headers(layout, carry, out)
        set_standard(layout, out, "egress_port", "port")
        set_standard(layout, out, "egress_rid", "rid")
        told = "p->told_length" if layout.plan.counts_length else "p->length"
        set_standard(layout, out, "packet_length", told)
        for field in ("enq_timestamp", "egress_global_timestamp"):
            set_standard(layout, out, field, "bpf_ktime_get_ns() / 1000")
        spec = layout.standard("egress_spec")
        if spec:
            out.line(f"{spec} = 0;")
        out.line("egress(p);")
        if spec:
            out.line(f"if ({spec} == INA_DROP_PORT) return XDP_DROP;")
        sums = emit_wire_sums(layout, out)
        out.line(f"update_checksums(p{sums});")
        out.line("const uint32_t written = deparse(p);")
        _emit_put(out)
        out.line("bpf_xdp_adjust_meta(ctx, (int)sizeof(carry)); // nobody behind us reads it")
        out.line("return XDP_PASS;")
    out.line()
    _emit_copies(out)


def _emit_copies(out: Writer) -> None:
    """Who calls ``leave``: what a copy takes at its interface, what hands a frame to the
    controller, and what runs a frame in memory."""
    with out.block('SEC("xdp/devmap") int ina_leave(struct xdp_md *const ctx)'):
        out.line("const uint32_t interface = ctx->egress_ifindex;")
        out.line("const uint32_t *const port = bpf_map_lookup_elem(&ina_ports, &interface);")
        out.line("if (!port) return XDP_DROP;")
        out.line("const carry *const c = (const carry *)(long)ctx->data_meta;")
        out.line("if ((void *)(c + 1) > (void *)(long)ctx->data) return XDP_ABORTED;")
        out.line("if (!c->is_group) return leave(ctx, *port, 0);")
        out.line("const uint32_t number = ina_copies_before(*port, c->frame);")
        out.line("const struct ina_copy copy = {c->to, (uint16_t)*port, number};")
        out.line("const uint32_t *const rid = bpf_map_lookup_elem(&ina_rids, &copy);")
        out.line("return rid ? leave(ctx, *port, *rid) : XDP_DROP;")
    out.line()
    with out.block('SEC("xdp") int ina_packet_in(struct xdp_md *const ctx)'):
        out.line("const uint32_t zero = 0;")
        out.line("const int verdict = leave(ctx, ina_live[1], 0);")
        out.line("packet *const p = bpf_map_lookup_elem(&ina_packets, &zero);")
        out.line("if (verdict != XDP_PASS || !p) return XDP_DROP;")
        out.line("uint64_t size = bpf_xdp_get_buff_len(ctx);")
        out.line("INA_ONE_REGISTER(size);")
        out.line("if (size == 0 || size > INA_ROOM) return XDP_DROP;")
        out.line("if (bpf_xdp_load_bytes(ctx, 0, p->in, (uint32_t)size)) return XDP_ABORTED;")
        out.line("bpf_ringbuf_output(&ina_controller, p->in, size, 0);")
        out.line("return XDP_DROP;")
    out.line()
    out.line("INA_MAP(ina_copy_of_test, MAP_ARRAY, 4, 8, 1, 0);")
    with out.block('SEC("xdp") int ina_egress_of_test(struct xdp_md *const ctx)'):
        out.line("const uint32_t zero = 0;")
        out.line("const uint32_t *const copy = bpf_map_lookup_elem(&ina_copy_of_test, &zero);")
        out.line("if (!copy) return XDP_ABORTED;")
        out.line("return leave(ctx, copy[0], copy[1]);")
    out.line()


def _emit_headers(layout: Layout, carry: Carry, out: Writer) -> None:
    """The frame's headers, by which of them are there."""
    program = layout.program
    out.line("uint32_t cursor = 0;")
    for number, name in enumerate(carry.what.headers):
        header_type = program.headers[name].type
        with out.block(f"if (headers >> {number} & 1)"):
            out.line("const uint8_t *const at = ina_at(p, cursor);")
            out.line("(void)at;")
            emit_load(layout.types[header_type.name], layout.header(name), out, frozenset())
            out.line(f"{layout.valid(name)} = 1;")
            if not program.headers[name].stack:
                out.line(f"{layout.place(name)} = cursor;")
            out.line(f"cursor += {header_type.width_bits // 8};")
    out.line("p->offset = cursor;")
