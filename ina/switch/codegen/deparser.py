"""The deparser to C: checksums, then every valid header, then the payload."""

from __future__ import annotations

from ina.switch.codegen.hashes import emit_csum16, emit_wire_csum16
from ina.switch.codegen.headers import reads_wire
from ina.switch.codegen.layout import Layout, TypeLayout
from ina.switch.codegen.statements import Statements
from ina.switch.codegen.writer import Writer
from ina.switch.ir.data import Field
from ina.switch.ir.program import Checksum


def emit_checksums(layout: Layout, to: Statements, out: Writer) -> None:
    """``verify_checksums`` (true: one was wrong) and ``update_checksums``."""
    checksums = layout.program.checksums
    with out.block("INA_INLINE bool verify_checksums(packet *const p)"):
        out.line("bool wrong = false;")
        for checksum in checksums:
            if checksum.verify:
                _verify(layout, to, out, checksum)
        out.line("(void)p;")
        out.line("return wrong;")
    out.line()
    with out.block("INA_INLINE void update_checksums(packet *const p)"):
        for checksum in checksums:
            if checksum.update:
                with out.block(_if(layout, to, checksum), source=checksum.source):
                    header_type = layout.program.headers[checksum.target.header].type
                    _emit_sum(layout, to, checksum, layout.uses[header_type.name].written)
                    width = checksum.target.width_bits
                    cut = "" if width >= 16 else f" & INA_MASK({width})"
                    out.line(f"{layout.field(checksum.target)} = csum{cut};")
        out.line("(void)p;")
    out.line()


def _if(layout: Layout, to: Statements, checksum: Checksum) -> str:
    """A checksum that would stand in an invalid header is neither verified nor updated."""
    header = layout.program.headers[checksum.target.header]
    terms = [] if header.metadata else [layout.valid(header.name)]
    if checksum.condition is not None:
        terms.append(to.expr.boolean(checksum.condition))
    return f"if ({' && '.join(terms)})" if terms else ""


def _verify(layout: Layout, to: Statements, out: Writer, checksum: Checksum) -> None:
    with out.block(_if(layout, to, checksum), source=checksum.source):
        _emit_sum(layout, to, checksum, set())
        out.line(f"wrong |= csum != {layout.field(checksum.target)};")


def _emit_sum(layout: Layout, to: Statements, checksum: Checksum, written: set[str]) -> None:
    """``csum``; fields not in ``written`` still stand in the packet."""
    if reads_wire(layout.program, checksum):
        emit_wire_csum16(to, checksum, written, "csum")
    else:
        emit_csum16(to, checksum.inputs, "csum")


def emit_deparser(layout: Layout, out: Writer) -> int:
    """``static size_t deparse(...)``; returns the most bytes that headers can take."""
    program = layout.program
    out.line("/* Writes valid headers and the payload; returns the length of the packet. */")
    with out.block("INA_INLINE uint32_t deparse(const packet *const p, uint8_t *const to)"):
        out.line("uint8_t *at = to;")
        most = 0
        for name in program.deparse:
            header_type = program.headers[name].type
            size = header_type.width_bits // 8
            most += size
            type_layout = layout.types[header_type.name]
            with out.block(f"if ({layout.valid(name)})"):
                if program.headers[name].stack:
                    emit_store(type_layout, layout.header(name), out)
                else:
                    wire, written = layout.wire(name), layout.uses[header_type.name].written
                    always = name not in layout.created
                    with out.block("" if always else f"if ({wire})"):
                        _copy_unwritten(type_layout, wire, written, out)
                        emit_store(type_layout, layout.header(name), out, written)
                    if not always:
                        with out.block("else"):
                            emit_store(type_layout, layout.header(name), out)
                out.line(f"at += {size};")
        out.line("const uint32_t payload = p->length - p->offset;")
        out.line("if (payload) memcpy(at, p->data + p->offset, payload);")
        out.line("const uint32_t length = (uint32_t)(at - to) + payload;")
        out.line("return length < p->truncate ? length : p->truncate;")
    out.line()
    return most


def _copy_unwritten(layout: TypeLayout, wire: str, written: set[str], out: Writer) -> None:
    """The header's bytes as they came, except arrays that are stored anyway."""
    fields = layout.type.fields
    start, end = 0, layout.type.width_bits // 8
    for array in layout.arrays:
        first = fields[array.first].offset_bits // 8
        if any(f.name in written for f in fields[array.first : array.first + array.count]):
            _copy_bytes(start, first, wire, out)
            start = first + array.count * array.width_bits // 8
    _copy_bytes(start, end, wire, out)


def _copy_bytes(start: int, end: int, wire: str, out: Writer) -> None:
    if end > start:
        out.line(f"memcpy(at + {start}, {wire} + {start}, {end - start});")


def emit_store(layout: TypeLayout, header: str, out: Writer, only: set[str] | None = None) -> None:
    """The struct's fields to the header at ``at``; ``only`` those bytes that hold these fields."""
    fields = layout.type.fields
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
            out.line(f"{store}(at + {offset}, {header}.{array.name}, {array.count});")
        else:
            _store_group(layout, header, group, out)


def _bits(fields: tuple[Field, ...]) -> int:
    return sum(field.width_bits for field in fields)


def _store_group(layout: TypeLayout, header: str, fields: tuple[Field, ...], out: Writer) -> None:
    total, first = _bits(fields), fields[0].offset_bits
    if total > 64 or first % 8 or total % 8:
        for field in fields:
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
            member = f"(uint64_t){_member(layout, header, field)}"
            terms.append(f"{member} << {below}" if below else member)
    where = f"at + {first // 8}" if first else "at"
    out.line(f"ina_store({where}, {total // 8}, {' | '.join(terms) or 0});")


def _member(layout: TypeLayout, header: str, field: Field) -> str:
    """The field's value; one that nobody touches is 0 unless it came from the packet."""
    name = layout.members.get(field.name)
    return f"{header}.{name}" if name else "(ina_u128)0"
