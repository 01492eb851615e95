"""Any frame: the program runs on a copy in memory of the processor's own, and the headers are
written back. So the kernel sees that whatever a program does, it touches nothing else."""

from __future__ import annotations

from ina.switch.emit.arrival import parse_any
from ina.switch.emit.checksums import emit_update, emit_verify
from ina.switch.emit.layout import Layout
from ina.switch.emit.parser import emit_load, emit_parser
from ina.switch.emit.standard import forget_headers
from ina.switch.emit.structs import emit_members
from ina.switch.emit.where import Where
from ina.switch.emit.writer import Writer
from ina.switch.emit_ebpf.carry import Carry
from ina.switch.emit_ebpf.deparser import emit_deparser
from ina.switch.emit_ebpf.statements import BpfStatements
from ina.switch.emit_ebpf.turns import arrive, carry_on, decide, leave, pass_egress


def emit_copied_packet(layout: Layout, out: Writer) -> None:
    """``packet``, and a pointer to its bytes."""
    out.line("/* One packet on its way, and the room for it: each processor has one. */")
    with out.block("typedef struct", tail="} packet;"):
        out.line("uint32_t length; // bytes received")
        out.line("uint32_t offset; // bytes of its headers as they came")
        if layout.plan.counts_length:
            out.line("uint32_t told_length; // to egress")
        emit_members(layout, out, "uint32_t {}; // its place")
        out.line("packet_arrays arrays;")
        out.line("ina_bits bits; // what is hashed")
        out.line("uint8_t in[2 * INA_ROOM + INA_LONGEST_HEADER]; // a frame, then zeros")
        out.line("uint8_t out[INA_HEADERS_ROOM + INA_LONGEST_HEADER];")
    out.line()
    with out.block("INA_INLINE const uint8_t *ina_at(const packet *const p, uint32_t place)"):
        out.line("return p->in + (place & (2 * INA_ROOM - 1));")
    out.line()


def emit_copied(to: BpfStatements, carry: Carry) -> None:
    """``take_any`` of a frame at ingress, ``leave_any`` of a copy at egress: what the kernel is to
    do with them."""
    layout, out = to.layout, to.out
    program = layout.program
    emit_parser(to)
    for name, block in (("ingress", program.ingress), ("egress", program.egress)):
        with out.block(f"INA_INLINE void {name}(packet *const p)"):
            out.line("(void)p;")
            to.at(Where(loops=layout.plan.loops)).block(block)
        out.line()
    emit_verify(to)
    emit_update(to)
    emit_deparser(layout, out, "deparse")
    with out.block("INA_INLINE void forget_all(packet *const p)"):
        forget_headers(layout, out)
    out.line()
    _emit_take(layout, carry, out)
    _emit_leave(layout, carry, out)


def _emit_take(layout: Layout, carry: Carry, out: Writer) -> None:
    parameters = "packet *const p, const uint32_t port, const uint64_t size"
    with out.block(f"INA_INLINE int take_any(struct xdp_md *const ctx, {parameters})"):
        _copy(out)
        arrive(layout, out)
        parse_any(layout, out)
        out.line("ingress(p);")
        decide(layout, out, "return XDP_DROP;")
        _put(out)
        carry_on(layout, carry, out)
    out.line()


def _emit_leave(layout: Layout, carry: Carry, out: Writer) -> None:
    parameters = "packet *const p, const uint32_t port, const uint32_t rid, const uint64_t size"
    with out.block(f"INA_INLINE int leave_any(struct xdp_md *const ctx, {parameters})"):
        _copy(out)
        carry.emit_find(out)
        carry.emit_restore(layout, out)
        _emit_headers(layout, carry, out)
        pass_egress(layout, out)
        _put(out)
        leave(out)
    out.line()


def _copy(out: Writer) -> None:
    out.line("if (bpf_xdp_load_bytes(ctx, 0, p->in, (uint32_t)size)) return XDP_ABORTED;")
    out.line("forget_all(p);")


def _put(out: Writer) -> None:
    out.line("const uint32_t written = deparse(p, p->out);")
    sizes = "written, p->offset, (uint32_t)size"
    out.line(f"if (!ina_put_headers(ctx, p->out, p->in, {sizes})) return XDP_ABORTED;")


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
