"""The deparser to C: checksums, then every valid header, then the payload."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ina.switch.emit_c.c_types import load_field
from ina.switch.emit_c.code import Code
from ina.switch.emit_c.hashes import emit_csum16, wire_csum16
from ina.switch.emit_c.layout import Layout, TypeLayout
from ina.switch.emit_c.where import GENERAL, ON_MAIN
from ina.switch.emit_c.writer import Writer
from ina.switch.ir.data import Field
from ina.switch.ir.expr import BoolConst, Expr
from ina.switch.passes.late_arrays import LateArray
from ina.switch.passes.plan import MainPath
from ina.switch.passes.sending import ChecksumPlan
from ina.switch.passes.storage import array_names


def emit_checksums(to: Code) -> None:
    """``verify_checksums`` (true: one was wrong) and ``update_checksums``."""
    layout, out = to.layout, to.out
    _emit_verify(to.at(GENERAL), "verify_checksums")
    if layout.plan.main is not None:
        _emit_verify(to.at(ON_MAIN), "verify_checksums_main")
    parameters = "".join(f", const uint64_t wire_{number}" for number, _ in _wire_updates(layout))
    with out.block(f"INA_INLINE void update_checksums(packet *const p{parameters})"):
        for number, plan in enumerate(layout.plan.checksums):
            checksum = plan.checksum
            if not checksum.update:
                continue
            with out.block(_if(to, plan, checksum.condition), source=checksum.source):
                if plan.from_packet:
                    changed, _ = wire_csum16(layout, plan, plan.written)
                    total = f"{changed} + wire_{number}"
                    out.line(f"const uint16_t csum = ina_csum16_finish({total});")
                else:
                    emit_csum16(to, checksum.inputs, "csum")
                width = checksum.target.width_bits
                cut = "" if width >= 16 else f" & INA_MASK({width})"
                out.line(f"{to.expr.lvalue(checksum.target)} = csum{cut};")
        out.line("(void)p;")
    out.line()


def _emit_verify(to: Code, name: str) -> None:
    out = to.out
    with out.block(f"INA_INLINE bool {name}(packet *const p)"):
        out.line("bool wrong = false;")
        for plan in to.layout.plan.checksums:
            if plan.checksum.verify:
                condition = plan.main_condition if to.where.late else plan.checksum.condition
                with out.block(_if(to, plan, condition), source=plan.checksum.source):
                    _verify(to, plan)
        out.line("(void)p;")
        out.line("return wrong;")
    out.line()


def _if(to: Code, plan: ChecksumPlan, condition: Expr | None) -> str:
    """A checksum that would stand in an invalid header is neither verified nor updated."""
    header = to.layout.program.headers[plan.checksum.target.header]
    terms = [] if header.metadata else [to.layout.valid(header.name)]
    if condition is not None and condition != BoolConst(True):
        terms.append(to.expr.boolean(condition))
    return f"if ({' && '.join(terms)})" if terms else ""


def _verify(to: Code, plan: ChecksumPlan) -> None:
    layout, out, target = to.layout, to.out, plan.checksum.target
    if plan.from_packet:
        _, wire = wire_csum16(layout, plan, frozenset())
        field = layout.program.headers[target.header].type.by_name[target.field]
        whole = field.width_bits == 16 and field.offset_bits % 8 == 0
        if whole and layout.plan.in_packet(target, late=to.where.late):
            at = f"{layout.wire(target.header)} + {field.offset_bits // 8}"
            out.line(f"wrong |= ina_csum16_finish({wire}) != ina_load_raw({at}, 2);")
            return
        out.line(f"const uint16_t csum = (uint16_t)~ina_csum16_wire({wire});")
    else:
        emit_csum16(to, plan.checksum.inputs, "csum")
    out.line(f"wrong |= csum != {to.expr.lvalue(target)};")


def _wire_updates(layout: Layout) -> list[tuple[int, ChecksumPlan]]:
    """Checksums to update that are partly over bytes of the packet, with their numbers."""
    return [
        (number, plan)
        for number, plan in enumerate(layout.plan.checksums)
        if plan.checksum.update and plan.from_packet
    ]


def emit_wire_sums(layout: Layout, out: Writer) -> str:
    """What all copies' checksums have in common; returns the arguments for update_checksums."""
    arguments = ""
    for number, plan in _wire_updates(layout):
        _, wire = wire_csum16(layout, plan, plan.written)
        valid = layout.valid(plan.checksum.target.header)
        out.line(f"const uint64_t wire_{number} = {valid} ? ina_csum16_wire({wire}) : 0;")
        arguments += f", wire_{number}"
    return arguments


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
        for run in main.deparse:
            if len(run) == 1:
                _emit_header(layout, out, run[0], main.late_arrays.get(run[0]))
                continue
            with out.block(f"if ({' && '.join(layout.valid(name) for name in run)})"):
                sizes = [layout.program.headers[name].type.width_bits // 8 for name in run]
                _copy_bytes(0, sum(sizes), layout.wire(run[0]), out)
                for name, size in zip(run, sizes, strict=True):
                    _store_written(layout, out, name)
                    out.line(f"at += {size};")
            with out.block("else"):
                for name in run:
                    _emit_header(layout, out, name)
        _emit_payload(out)
        with out.block("if (tail && shared->wanted && p->truncate == UINT32_MAX)"):
            out.line("*shared = (ina_tail){tail, length - (uint32_t)(tail - to), false, false};")
        out.line("(void)tail;")
        out.line("return length < p->truncate ? length : p->truncate;")
    out.line()


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
                _copy_unwritten(type_layout, wire, written, out)
                rest = written - set(array_names(header_type, late.array)) if late else written
                emit_store(type_layout, layout.header(name), out, rest, wire)
                if late and late.is_written:
                    _store_late_array(layout, out, late)
            if not always:
                with out.block("else"):
                    emit_store(type_layout, layout.header(name), out)
        out.line(f"at += {header_type.width_bits // 8};")


def _store_late_array(layout: Layout, out: Writer, late: LateArray) -> None:
    """The values, from where ingress left them, unless an earlier copy has them."""
    name, array = late.header, late.array
    at = layout.program.headers[name].type.fields[array.first].offset_bits // 8
    kept_in = layout.kept_in(name)
    store = f"ina_store_array_{array.width_bits}(at + {at}, {kept_in}, {array.count})"
    size = array.count * array.width_bits // 8
    if late.ends_frame:
        with out.block("if (shared->data && p->truncate == UINT32_MAX)"):
            out.line("shared->used = true;")
            out.line(f"return (uint32_t)(at - to) + {at};")
        out.line(f"tail = at + {at};")
    out.line(f"if ({kept_in}) {store};")
    out.line(f"else memcpy(at + {at}, {layout.wire(name)} + {at}, {size});")


def _store_written(layout: Layout, out: Writer, name: str) -> None:
    """What the program can have changed, over the header's bytes as they came."""
    header_type = layout.program.headers[name].type
    written = layout.plan.uses[header_type.name].written
    emit_store(layout.types[header_type.name], layout.header(name), out, written, layout.wire(name))


def _copy_unwritten(layout: TypeLayout, wire: str, written: AbstractSet[str], out: Writer) -> None:
    """The header's bytes as they came, except arrays that are stored anyway."""
    header_type = layout.storage.type
    start, end = 0, header_type.width_bits // 8
    for array in layout.arrays:
        first = header_type.fields[array.first].offset_bits // 8
        if not written.isdisjoint(array_names(header_type, array)):
            _copy_bytes(start, first, wire, out)
            start = first + array.count * array.width_bits // 8
    _copy_bytes(start, end, wire, out)


def _copy_bytes(start: int, end: int, wire: str, out: Writer) -> None:
    if end > start:
        out.line(f"memcpy(at + {start}, {wire} + {start}, {end - start});")


def emit_store(
    layout: TypeLayout,
    header: str,
    out: Writer,
    only: AbstractSet[str] | None = None,
    wire: str = "",
) -> None:
    """The struct's fields to the header at ``at``; ``only`` those bytes that hold these fields.

    Fields that share a byte with them and are not in the struct come from ``wire``.
    """
    fields = layout.storage.type.fields
    array_at = {array.first: array for array in layout.arrays}
    position = 0
    while position < len(fields):
        array = array_at.get(position)
        stop = position + (array.count if array else 1)
        while not array and _bits(fields[position:stop]) % 8 and stop < len(fields):
            if stop in array_at:
                break
            stop += 1
        group = fields[position:stop]
        position = stop
        if only is not None and not any(f.name in only for f in group):
            continue
        if array is not None:
            offset = group[0].offset_bits // 8
            store = f"ina_store_array_{array.width_bits}"
            out.line(f"{store}(at + {offset}, {header}.{layout.arrays[array]}, {array.count});")
        else:
            _store_group(layout, header, group, out, only, wire)


def _bits(fields: tuple[Field, ...]) -> int:
    return sum(field.width_bits for field in fields)


def _store_group(
    layout: TypeLayout,
    header: str,
    fields: tuple[Field, ...],
    out: Writer,
    only: AbstractSet[str] | None,
    wire: str,
) -> None:
    total, first = _bits(fields), fields[0].offset_bits
    if total > 64 or first % 8 or total % 8:
        for field in fields:
            if only is not None and field.name not in only:
                continue  # its bits are in place
            member = _member(layout, header, field)
            if field.width_bits == 128 and field.offset_bits % 8 == 0:
                at = field.offset_bits // 8
                out.line(f"ina_store(at + {at}, 8, (uint64_t)({member} >> 64));")
                out.line(f"ina_store(at + {at + 8}, 8, (uint64_t){member});")
            else:
                out.line(f"ina_store_bits(at, {field.offset_bits}, {field.width_bits}, {member});")
        return
    terms, below = [], total
    for field in fields:
        below -= field.width_bits
        if field.name in layout.members:
            value = f"(uint64_t){_member(layout, header, field)}"
        elif wire:
            value = f"(uint64_t)({load_field(field, wire)})"
        else:
            continue
        terms.append(f"{value} << {below}" if below else value)
    where = f"at + {first // 8}" if first else "at"
    out.line(f"ina_store({where}, {total // 8}, {' | '.join(terms) or 0});")


def _member(layout: TypeLayout, header: str, field: Field) -> str:
    """The field's value; one that nobody touches is 0 unless it came from the packet."""
    name = layout.members.get(field.name)
    return f"{header}.{name}" if name else "(ina_u128)0"
