"""Packets of the main path, which are read and changed where they lie.

The general code runs on a copy of the frame. On the main path every header is where it always is:
one comparison with the frame's end is enough for the kernel, and nothing is copied. Values are
summed from the frame into registers, and what ingress or egress changed is stored over what was
there. A copy goes this way at egress if it has the headers of the main path and no others.
"""

from __future__ import annotations

from dataclasses import dataclass

from ina.switch.emit.arrival import parse_main, unpack_late
from ina.switch.emit.checksums import emit_update, emit_verify
from ina.switch.emit.code import Code
from ina.switch.emit.early import early_tables, emit_early_type
from ina.switch.emit.layout import Layout
from ina.switch.emit.parser import emit_load, emit_main_parser
from ina.switch.emit.standard import forget_headers
from ina.switch.emit.store import emit_store
from ina.switch.emit.structs import emit_members
from ina.switch.emit.where import GENERAL, ON_MAIN, Where
from ina.switch.emit.writer import Writer
from ina.switch.emit_ebpf.carry import Carry
from ina.switch.emit_ebpf.deparser import but_arrays, emit_deparser, header_bytes
from ina.switch.emit_ebpf.memory import MOST_AHEAD
from ina.switch.emit_ebpf.statements import BpfStatements
from ina.switch.emit_ebpf.turns import arrive, carry_on, decide, leave, pass_egress
from ina.switch.ir.stmt import Extract
from ina.switch.passes.effect_places import Kind
from ina.switch.passes.effects import effects_of_copies
from ina.switch.passes.plan import MainPath, Plan
from ina.switch.passes.storage import array_names


@dataclass(frozen=True)
class InFrame:
    """The main path of a plan, on this target."""

    layout: Layout
    main: MainPath
    headers: tuple[str, ...]
    """In the order of the frame."""

    @property
    def size_bytes(self) -> int:
        """Of the headers."""
        return sum(header_bytes(self.layout, name) for name in self.headers)


def headers_in_frame(plan: Plan) -> tuple[str, ...]:
    """Those of packets that can stay where they lie; none: every packet is copied.

    Egress must find all it reads in headers that are not indexed (a sum's values it only sends),
    and the frame must not grow by more than there is room in front of it.
    """
    if plan.main is None or plan.program.stacks:
        return ()
    program = plan.program
    found = [
        stmt.name
        for step in plan.main.steps
        for stmt, _ in step.plan.body
        if isinstance(stmt, Extract)
    ]
    at_egress = effects_of_copies(program)
    indexed = (at_egress.reads.names(Kind.FIELD) | at_egress.writes.names(Kind.FIELD)) & plan.apart
    others = [program.headers[name].type for name in program.deparse if name not in found]
    if sum(it.width_bits // 8 for it in others) > MOST_AHEAD or indexed:
        return ()
    in_order = tuple(name for name in program.deparse if name in found)
    return in_order if list(in_order) == found else ()


def emit_frame_packet(layout: Layout, out: Writer) -> None:
    """``frame_packet``: all of it is to live in machine registers."""
    assert layout.plan.main is not None
    with out.block("typedef struct", tail=f"}} {layout.frame.packet};"):
        out.line("const uint8_t *data;")
        out.line("uint32_t length; // bytes received")
        out.line("uint32_t offset; // bytes of its headers")
        if layout.plan.counts_length:
            out.line("uint32_t told_length; // to egress")
        out.line("packet_arrays *arrays;")
        emit_members(layout, out, "const uint8_t *{}; // its bytes in the packet, or NULL")
        for name, late in layout.plan.main.late_arrays.items():
            width, c_name = late.array.width_bits, layout.name(name)
            out.line(f"const uint{width}_t *{c_name}_kept_in; // its values, or NULL")
    out.line()
    emit_early_type(layout, out)


def emit_in_frame(to: BpfStatements, frame: InFrame, carry: Carry) -> None:
    """``take_main`` and ``leave_main``: as those of the general code, or INA_ANOTHER_WAY, with
    nothing done, if the packet is none of the main path."""
    layout, out, main = frame.layout, to.out, frame.main
    packet = layout.frame.packet
    emit_main_parser(to, main)
    on_main = to.at(Where(late=True, loops=main.loops, early=main.early))
    early = ", const early_entries *const early" if early_tables(layout) else ""
    with out.block(f"INA_INLINE void ingress_main({packet} *const p{early})"):
        out.line("(void)p;")
        on_main.block(main.ingress)
    out.line()
    with out.block(f"INA_INLINE void egress_main({packet} *const p)"):
        out.line("(void)p;")
        to.at(Where(loops=layout.plan.loops)).block(layout.program.egress)
    out.line()
    emit_verify(to.at(ON_MAIN))
    emit_update(to.at(GENERAL), "update_checksums_main")
    emit_deparser(layout, out, "deparse_main", frozenset(frame.headers))
    _emit_on_main(to.at(ON_MAIN), frame)
    _emit_take(frame, carry, out)
    _emit_leave(frame, carry, out)


def _emit_on_main(to: Code, frame: InFrame) -> None:
    """``on_main``: whether it is, and then it has passed ingress."""
    layout, out = to.layout, to.out
    with out.block(f"INA_INLINE bool on_main({layout.frame.packet} *const p)"):
        early = parse_main(to, frame.main)
        out.line(f"ingress_main(p{early});")
        decide(layout, out, "return true;")
        out.line("(void)group;")
        unpack_late(layout, out, frame.main)
        out.line("return true;")
    out.line()


def _emit_take(frame: InFrame, carry: Carry, out: Writer) -> None:
    layout = frame.layout
    parameters = "packet *const room, const uint32_t port, const uint64_t size"
    with out.block(f"INA_INLINE int take_main(struct xdp_md *const ctx, {parameters})"):
        _lie(frame, out)
        arrive(layout, out)
        out.line("if (!on_main(p)) return INA_ANOTHER_WAY;")
        decide(layout, out, "return XDP_DROP;")
        at_bytes = 0
        for name in frame.headers:
            _store_arrays(frame, name, at_bytes, out)
            at_bytes += header_bytes(layout, name)
        _rewrite(frame, out)
        carry_on(layout, carry, out)
    out.line()


def _emit_leave(frame: InFrame, carry: Carry, out: Writer) -> None:
    layout = frame.layout
    parameters = "packet *const room, const uint32_t port, const uint32_t rid, const uint64_t size"
    with out.block(f"INA_INLINE int leave_main(struct xdp_md *const ctx, {parameters})"):
        carry.emit_find(out)
        out.line(f"if (c->headers != {carry.bits(frame.headers):#x}u) return INA_ANOTHER_WAY;")
        _lie(frame, out)
        carry.emit_restore(layout, out)
        out.line("(void)headers;")
        at_bytes = 0
        for name in frame.headers:
            with out.block(""):
                out.line(f"const uint8_t *const at = data + {at_bytes};")
                types = layout.types[layout.program.headers[name].type.name]
                fields = types.storage.type.fields
                arrays = frozenset(fields[array.first].name for array in types.arrays)
                emit_load(types, layout.header(name), out, arrays)
                out.line(f"{layout.valid(name)} = 1;")
                out.line(f"{layout.place(name)} = at;")
            at_bytes += header_bytes(layout, name)
        out.line(f"p->offset = {at_bytes};")
        pass_egress(layout, out, "_main")
        _rewrite(frame, out)
        leave(out)
    out.line()


def _lie(frame: InFrame, out: Writer) -> None:
    """Declares ``data`` and ``p``, a packet of which nothing is known but its bytes."""
    out.line("uint8_t *const data = (uint8_t *)(long)ctx->data;")
    is_short = f"data + {frame.size_bytes} > (uint8_t *)(long)ctx->data_end"
    out.line(f"if ({is_short}) return INA_ANOTHER_WAY;")
    out.line(f"{frame.layout.frame.packet} storage;")
    out.line(f"{frame.layout.frame.packet} *const p = &storage;")
    out.line("p->data = data;")
    out.line("p->arrays = &room->arrays;")
    for name in frame.main.late_arrays:
        out.line(f"{frame.layout.kept_in(name)} = NULL;")
    forget_headers(frame.layout, out)


def _store_arrays(frame: InFrame, name: str, at_bytes: int, out: Writer) -> None:
    """A header's values that are elsewhere: where its late array is kept, or with the packet."""
    layout = frame.layout
    header_type = layout.program.headers[name].type
    types, late = layout.types[header_type.name], frame.main.late_arrays.get(name)
    for array, member in types.arrays.items():
        if layout.plan.uses[header_type.name].written.isdisjoint(array_names(header_type, array)):
            continue
        at = f"data + {at_bytes + header_type.fields[array.first].offset_bits // 8}"
        kept_in = f"{layout.header(name)}.{member}"
        if late is not None and late.array == array:
            kept_in = layout.kept_in(name)
            out.line(f"if ({kept_in})")
        out.line(f"ina_store_array_{array.width_bits}({at}, {kept_in}, {array.count});")


def _rewrite(frame: InFrame, out: Writer) -> None:
    """What can have changed, over what was there, if the headers are still the same: none is gone,
    or was made anew or from another, of which what nobody reads is not what is there."""
    layout, program = frame.layout, frame.layout.program
    same = [f"!{layout.valid(name)}" for name in program.deparse if name not in frame.headers]
    at_bytes = 0
    for name in frame.headers:
        same.append(layout.valid(name))
        if name in layout.plan.created:
            same.append(f"{layout.place(name)} == data + {at_bytes}")
        at_bytes += header_bytes(layout, name)
    at_bytes = 0
    with out.block(f"if ({' && '.join(same)})"):
        for name in frame.headers:
            header_type = program.headers[name].type
            types = layout.types[header_type.name]
            written = but_arrays(types, layout.plan.uses[header_type.name].written)
            with out.block(""):
                out.line(f"uint8_t *const at = data + {at_bytes};")
                out.line("(void)at;")
                emit_store(types, layout.header(name), out, written, "at")
            at_bytes += header_bytes(layout, name)
    with out.block("else"):
        out.line("const uint32_t written = deparse_main(p, room->out);")
        moved = f"ina_move_headers(ctx, room->out, written, {at_bytes})"
        out.line(f"if (!{moved}) return XDP_ABORTED;")
