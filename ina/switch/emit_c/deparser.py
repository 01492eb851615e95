"""The deparser to C: every valid header, then the payload, to another place."""

from __future__ import annotations

from ina.switch.emit.layout import Layout
from ina.switch.emit.store import copy_bytes, copy_unwritten, emit_store
from ina.switch.emit.writer import Writer
from ina.switch.passes.late_arrays import LateArray
from ina.switch.passes.plan import MainPath
from ina.switch.passes.storage import array_names


def emit_deparser(layout: Layout, out: Writer) -> int:
    """``deparse`` and ``deparse_main``; returns the most bytes that headers can take."""
    program, main = layout.program, layout.plan.main
    out.line("/* Writes valid headers and the payload; returns how much it wrote. */")
    with out.block("INA_INLINE uint32_t deparse(const packet *const p, uint8_t *const to)"):
        out.line("uint8_t *at = to;")
        for name in program.deparse:
            _emit_header(layout, out, name)
        _emit_payload(out)
        out.line("return length < p->truncate ? length : p->truncate;")
    out.line()
    if main is not None:
        _emit_deparse_main(layout, out, main)
    return sum(program.headers[name].type.width_bits // 8 for name in program.deparse)


def _emit_deparse_main(layout: Layout, out: Writer, main: MainPath) -> None:
    out.line("/* Writes valid headers and the payload; returns how much it wrote. */")
    head = "INA_INLINE uint32_t deparse_main(const packet *const p, uint8_t *const to"
    with out.block(f"{head}, ina_tail *const shared)"):
        out.line("uint8_t *at = to;")
        out.line("const uint8_t *tail = NULL; // what no copy changes, to the packet's end")
        out.line("shared->used = false;")
        if main.has_trailer:
            out.line("const uint8_t *trailer = NULL; // what is behind the tail, if it is shared")
            out.line("uint32_t tail_length = 0;")
        for run in main.deparse:
            if len(run) == 1:
                _emit_header(layout, out, run[0], main.late_arrays.get(run[0]))
                continue
            with out.block(f"if ({' && '.join(layout.valid(name) for name in run)})"):
                sizes = [layout.program.headers[name].type.width_bits // 8 for name in run]
                copy_bytes(0, sum(sizes), layout.wire(run[0]), out)
                for name, size in zip(run, sizes, strict=True):
                    _store_written(layout, out, name)
                    out.line(f"at += {size};")
            with out.block("else"):
                for name in run:
                    _emit_header(layout, out, name)
        _emit_payload(out)
        if main.has_trailer:
            _share_before_trailer(out)
            return
        with out.block("if (tail && shared->wanted && p->truncate == UINT32_MAX)"):
            out.line("*shared = (ina_tail){tail, length - (uint32_t)(tail - to), false, false, 0};")
        out.line("(void)tail;")
        out.line("return length < p->truncate ? length : p->truncate;")
    out.line()


def _share_before_trailer(out: Writer) -> None:
    with out.block("if (trailer)"):
        out.line("shared->used = true;")
        out.line("shared->trailer_length = length - (uint32_t)(trailer - to);")
    with out.block("else if (tail && shared->wanted && p->truncate == UINT32_MAX)"):
        out.line("*shared = (ina_tail){tail, tail_length, false, false, 0};")
    out.line("return length < p->truncate ? length : p->truncate;")


def _emit_payload(out: Writer) -> None:
    out.line("const uint32_t payload = p->length - p->offset;")
    out.line("if (payload) memcpy(at, p->data + p->offset, payload);")
    out.line("const uint32_t length = (uint32_t)(at - to) + payload;")


def _emit_header(layout: Layout, out: Writer, name: str, late: LateArray | None = None) -> None:
    header_type, plan = layout.program.headers[name].type, layout.plan
    type_layout = layout.types[header_type.name]
    with out.block(f"if ({layout.valid(name)})"):
        if layout.program.headers[name].stack:
            emit_store(type_layout, layout.header(name), out)
        else:
            wire, written = layout.wire(name), plan.uses[header_type.name].written
            always = name not in plan.created
            with out.block("" if always else f"if ({wire})"):
                copy_unwritten(type_layout, wire, written, out)
                rest = written - set(array_names(header_type, late.array)) if late else written
                emit_store(type_layout, layout.header(name), out, rest, wire)
                if late and late.is_written:
                    _store_late_array(layout, out, late)
            if not always:
                with out.block("else"):
                    emit_store(type_layout, layout.header(name), out)
        size = header_type.width_bits // 8
        if late and late.is_written and late.has_trailer:
            values = late.array.count * late.array.width_bits // 8
            out.line(f"at += trailer ? {size - values} : {size};")
        else:
            out.line(f"at += {size};")


def _store_late_array(layout: Layout, out: Writer, late: LateArray) -> None:
    """The values, from where ingress left them, unless an earlier copy has them."""
    name, array = late.header, late.array
    at = layout.program.headers[name].type.fields[array.first].offset_bits // 8
    kept_in = layout.kept_in(name)
    store = f"ina_store_array_{array.width_bits}(at + {at}, {kept_in}, {array.count})"
    size = array.count * array.width_bits // 8
    copy = f"memcpy(at + {at}, {layout.wire(name)} + {at}, {size})"
    if late.has_trailer:
        with out.block("if (shared->data && p->truncate == UINT32_MAX)"):
            out.line(f"trailer = at + {at}; // where what is behind them comes")
        with out.block("else"):
            out.line(f"tail = at + {at};")
            out.line(f"tail_length = {size};")
            out.line(f"if ({kept_in}) {store};")
            out.line(f"else {copy};")
        return
    if late.ends_frame:
        with out.block("if (shared->data && p->truncate == UINT32_MAX)"):
            out.line("shared->used = true;")
            out.line(f"return (uint32_t)(at - to) + {at};")
        out.line(f"tail = at + {at};")
    out.line(f"if ({kept_in}) {store};")
    out.line(f"else {copy};")


def _store_written(layout: Layout, out: Writer, name: str) -> None:
    """What the program can have changed, over the header's bytes as they came."""
    header_type = layout.program.headers[name].type
    written = layout.plan.uses[header_type.name].written
    emit_store(layout.types[header_type.name], layout.header(name), out, written, layout.wire(name))
