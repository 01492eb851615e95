"""The deparser to C: checksums, then every valid header, then the payload."""

from __future__ import annotations

from ina.switch.emit_c.hashes import emit_csum16, wire_csum16
from ina.switch.emit_c.headers import reads_wire
from ina.switch.emit_c.layout import Layout, TypeLayout, load_field
from ina.switch.emit_c.statements import Statements
from ina.switch.emit_c.writer import Writer
from ina.switch.ir.data import Field
from ina.switch.ir.expr import BoolConst
from ina.switch.ir.program import Checksum
from ina.switch.passes.main_path import MainPath
from ina.switch.passes.specialise import known


def emit_checksums(layout: Layout, to: Statements, out: Writer) -> None:
    """``verify_checksums`` (true: one was wrong) and ``update_checksums``."""
    checksums = layout.program.checksums
    for main in (False, True) if layout.main_path is not None else (False,):
        layout.on_main = main
        name = "verify_checksums_main" if main else "verify_checksums"
        with out.block(f"INA_INLINE bool {name}(packet *const p)"):
            out.line("bool wrong = false;")
            for checksum in checksums:
                if checksum.verify:
                    _verify(layout, to, out, checksum)
            out.line("(void)p;")
            out.line("return wrong;")
        out.line()
    layout.on_main = False
    parameters = "".join(f", const uint64_t wire_{number}" for number, _ in _wire_updates(layout))
    with out.block(f"INA_INLINE void update_checksums(packet *const p{parameters})"):
        for number, checksum in enumerate(checksums):
            if checksum.update:
                with out.block(_if(layout, to, checksum), source=checksum.source):
                    if reads_wire(layout.program, checksum):
                        changed, _ = wire_csum16(layout, checksum, _written(layout, checksum))
                        total = f"{changed} + wire_{number}"
                        out.line(f"const uint16_t csum = ina_csum16_finish({total});")
                    else:
                        emit_csum16(to, checksum.inputs, "csum")
                    width = checksum.target.width_bits
                    cut = "" if width >= 16 else f" & INA_MASK({width})"
                    out.line(f"{layout.field(checksum.target)} = csum{cut};")
        out.line("(void)p;")
    out.line()


def _if(layout: Layout, to: Statements, checksum: Checksum) -> str:
    """A checksum that would stand in an invalid header is neither verified nor updated."""
    header = layout.program.headers[checksum.target.header]
    terms = [] if header.metadata else [layout.valid(header.name)]
    condition = checksum.condition
    if layout.on_main and layout.main is not None and condition is not None:
        condition = known(condition, layout.main.facts)
    if condition is not None and condition != BoolConst(True):
        terms.append(to.expr.boolean(condition))
    return f"if ({' && '.join(terms)})" if terms else ""


def _verify(layout: Layout, to: Statements, out: Writer, checksum: Checksum) -> None:
    with out.block(_if(layout, to, checksum), source=checksum.source):
        if reads_wire(layout.program, checksum):
            _, wire = wire_csum16(layout, checksum, set())
            target = layout.program.headers[checksum.target.header].type.by_name[
                checksum.target.field
            ]
            whole = target.width_bits == 16 and target.offset_bits % 8 == 0
            if whole and layout.stands_in_packet(checksum.target):
                at = f"{layout.wire(checksum.target.header)} + {target.offset_bits // 8}"
                out.line(f"wrong |= ina_csum16_finish({wire}) != ina_load_raw({at}, 2);")
                return
            out.line(f"const uint16_t csum = (uint16_t)~ina_csum16_wire({wire});")
        else:
            emit_csum16(to, checksum.inputs, "csum")
        out.line(f"wrong |= csum != {layout.field(checksum.target)};")


def _written(layout: Layout, checksum: Checksum) -> set[str]:
    return layout.uses[layout.program.headers[checksum.target.header].type.name].written


def _wire_updates(layout: Layout) -> list[tuple[int, Checksum]]:
    """Checksums to update that are partly over bytes of the packet, with their numbers."""
    return [
        (number, checksum)
        for number, checksum in enumerate(layout.program.checksums)
        if checksum.update and reads_wire(layout.program, checksum)
    ]


def emit_wire_sums(layout: Layout, out: Writer) -> str:
    """What all copies' checksums have in common; returns the arguments for update_checksums."""
    arguments = ""
    for number, checksum in _wire_updates(layout):
        _, wire = wire_csum16(layout, checksum, _written(layout, checksum))
        valid = layout.valid(checksum.target.header)
        out.line(f"const uint64_t wire_{number} = {valid} ? ina_csum16_wire({wire}) : 0;")
        arguments += f", wire_{number}"
    return arguments


def emit_deparser(layout: Layout, out: Writer) -> int:
    """``deparse`` and ``deparse_main``; returns the most bytes that headers can take."""
    program = layout.program
    _emit_deparse(layout, out, "deparse", [[name] for name in program.deparse])
    if layout.main_path is not None:
        _emit_deparse(layout, out, "deparse_main", _runs(layout, layout.main_path))
    return sum(program.headers[name].type.width_bits // 8 for name in program.deparse)


def _runs(layout: Layout, path: MainPath) -> list[list[str]]:
    """The headers to send, those together that lie one behind the other on the main path."""
    runs: list[list[str]] = []
    end = -1  # where the run so far ends in the packet; -1: nothing may follow it
    for name in layout.program.deparse:
        size = layout.program.headers[name].type.width_bits // 8
        first = path.offsets_bytes.get(name)
        if first is None or name in layout.created or layout.is_large(name):
            runs.append([name])
            end = -1
        elif first == end:
            runs[-1].append(name)
            end += size
        else:
            runs.append([name])
            end = first + size
    return runs


def _emit_deparse(layout: Layout, out: Writer, function: str, runs: list[list[str]]) -> None:
    main = function == "deparse_main"
    shared = ", ina_tail *const shared" if main else ""
    out.line("/* Writes valid headers and the payload; returns how much it wrote. */")
    head = f"INA_INLINE uint32_t {function}(const packet *const p, uint8_t *const to{shared})"
    with out.block(head):
        out.line("uint8_t *at = to;")
        if main:
            out.line("const uint8_t *tail = NULL; // what no copy changes, to the packet's end")
            out.line("shared->used = false;")
        for run in runs:
            if len(run) == 1:
                _emit_header(layout, out, run[0], late=main)
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
        out.line("const uint32_t payload = p->length - p->offset;")
        out.line("if (payload) memcpy(at, p->data + p->offset, payload);")
        out.line("const uint32_t length = (uint32_t)(at - to) + payload;")
        if main:
            with out.block("if (tail && shared->wanted && p->truncate == UINT32_MAX)"):
                out.line(
                    "*shared = (ina_tail){tail, length - (uint32_t)(tail - to), false, false};"
                )
            out.line("(void)tail;")
        out.line("return length < p->truncate ? length : p->truncate;")
    out.line()


def _emit_header(layout: Layout, out: Writer, name: str, *, late: bool = False) -> None:
    header_type = layout.program.headers[name].type
    type_layout = layout.types[header_type.name]
    with out.block(f"if ({layout.valid(name)})"):
        if layout.program.headers[name].stack:
            emit_store(type_layout, layout.header(name), out)
        else:
            wire, written = layout.wire(name), layout.uses[header_type.name].written
            always = name not in layout.created
            with out.block("" if always else f"if ({wire})"):
                _copy_unwritten(type_layout, wire, written, out)
                late_array = layout.late_arrays.get(name) if late else None
                rest = written - late_array.fields(header_type) if late_array else written
                emit_store(type_layout, layout.header(name), out, rest, wire)
                if late_array:
                    _store_late_array(layout, out, name)
            if not always:
                with out.block("else"):
                    emit_store(type_layout, layout.header(name), out)
        out.line(f"at += {header_type.width_bits // 8};")


def _store_late_array(layout: Layout, out: Writer, name: str) -> None:
    """The values, from where ingress left them, unless an earlier copy has them."""
    array = layout.late_arrays[name].array
    fields = layout.program.headers[name].type.fields[array.first : array.first + array.count]
    written = layout.uses[layout.program.headers[name].type.name].written
    if any(f.name in written for f in fields):
        at, kept_in = fields[0].offset_bits // 8, layout.kept_in(name)
        store = f"ina_store_array_{array.width_bits}(at + {at}, {kept_in}, {array.count})"
        size = array.count * array.width_bits // 8
        last = layout.program.deparse[-1] == name
        if last and array.first + array.count == len(layout.program.headers[name].type.fields):
            with out.block("if (shared->data && p->truncate == UINT32_MAX)"):
                out.line("shared->used = true;")
                out.line(f"return (uint32_t)(at - to) + {at};")
            out.line(f"tail = at + {at};")
        out.line(f"if ({kept_in}) {store};")
        out.line(f"else memcpy(at + {at}, {layout.wire(name)} + {at}, {size});")


def _store_written(layout: Layout, out: Writer, name: str) -> None:
    """What the program can have changed, over the header's bytes as they came."""
    header_type = layout.program.headers[name].type
    written = layout.uses[header_type.name].written
    emit_store(layout.types[header_type.name], layout.header(name), out, written, layout.wire(name))


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


def emit_store(
    layout: TypeLayout,
    header: str,
    out: Writer,
    only: set[str] | None = None,
    wire: str = "",
) -> None:
    """The struct's fields to the header at ``at``; ``only`` those bytes that hold these fields.

    Fields that share a byte with them and are not in the struct come from ``wire``.
    """
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
            _store_group(layout, header, group, out, only, wire)


def _bits(fields: tuple[Field, ...]) -> int:
    return sum(field.width_bits for field in fields)


def _store_group(
    layout: TypeLayout,
    header: str,
    fields: tuple[Field, ...],
    out: Writer,
    only: set[str] | None,
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
