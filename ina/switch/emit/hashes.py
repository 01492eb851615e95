"""Hashes and checksums to C."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import takewhile

from ina.switch.emit.code import Code
from ina.switch.emit.crcs import emit_crc, planned
from ina.switch.emit.layout import Layout
from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.data import Field
from ina.switch.ir.expr import FieldRef, WholeArray
from ina.switch.ir.ranges import range_of
from ina.switch.ir.stmt import Hash, HashInput
from ina.switch.passes.sending import ChecksumPlan
from ina.switch.passes.storage import array_names


def emit_hash(to: Code, stmt: Hash) -> None:
    """``target = base + hash % size``."""
    with to.out.block("", source=stmt.source):
        plan = planned(to, stmt)
        if plan is not None:
            result = f"(uint32_t){emit_crc(to, plan)}"
        else:
            emit_bits(to, stmt.inputs)
            result = f"ina_hash_{stmt.algorithm}(bits)"
        size = to.expr.exact(stmt.size, 64)
        if range_of(stmt.size)[0] <= 0:
            size = f"({size} ? {size} : 1)"
        base = to.expr.exact(stmt.base, 64)
        to.out.line(f"const uint64_t hash = (uint64_t)({result} % {size} + {base});")
        width = stmt.target.width_bits
        code = "hash" if width in (8, 16, 32, 64) or width > 64 else f"hash & INA_MASK({width})"
        to.store(stmt.target, code, stmt)


def emit_bits(to: Code, inputs: tuple[HashInput, ...]) -> None:
    """``bits``: the inputs one after another, those of invalid headers left out."""
    most = to.layout.memory.most_hash_bytes
    if sum(item.width_bits for item in inputs) > 8 * most:
        raise UnsupportedProgramError(f"a hash over more than {most} bytes")
    to.layout.memory.bits(to.out, to.layout.frame)
    to.out.line("bits->bits = 0;")
    at = 0
    while at < len(inputs):
        item = inputs[at]
        guard = f"if ({to.layout.valid(item.header)}) " if item.header else ""
        if isinstance(item.value, WholeArray):
            _put_array(to, item.value, guard)
            at += 1
            continue
        run = _run(to.layout, inputs[at:])
        if run is not None:
            width, first, count = run
            to.out.line(f"{guard}ina_bits_put_array_{width}(bits, &{first}, {count});")
            at += count
            continue
        value = to.expr.stored(item.value, item.width_bits)
        to.out.line(f"{guard}ina_bits_put(bits, {item.width_bits}, {value});")
        at += 1


def _put_array(to: Code, array: WholeArray, guard: str) -> None:
    layout, out = to.layout, to.out
    [stored] = (it for it in layout.type_of(array.header).arrays if it.first == array.first)
    own = layout.array(array.header, stored)
    if not layout.memory.puts_arrays:
        with out.block(f"{guard}for (size_t k = 0; k < {array.count}; k++)"):
            out.line(f"ina_bits_put(bits, {array.width_bits}, {own}[k]);")
        return
    put = f"ina_bits_put_array_{array.width_bits}(bits"
    main = layout.plan.main if to.where.late_arrays else None
    if main is not None and array.header in main.late_arrays:
        kept_in = layout.kept_in(array.header)
        first = layout.program.headers[array.header].type.fields[array.first].offset_bits // 8
        size = array.count * array.width_bits // 8
        with out.block(guard):
            out.line(f"if ({kept_in}) {put}, {kept_in}, {array.count});")
            wire = f"{layout.wire(array.header)} + {first}"
            out.line(f"else ina_bits_put_bytes(bits, {wire}, {size});")
        return
    out.line(f"{guard}{put}, {own}, {array.count});")


def _run(layout: Layout, inputs: tuple[HashInput, ...]) -> tuple[int, str, int] | None:
    """As many inputs as stand one behind the other in an array: its elements' width, the first of
    them, and how many; None: the first one is alone."""
    ref = inputs[0].value
    if not layout.memory.puts_arrays or type(ref) is not FieldRef:
        return None
    types = layout.type_of(ref.header)
    for array in types.arrays:
        names = array_names(types.storage.type, array)
        if ref.field not in names:
            continue
        rest = names[names.index(ref.field) :]
        wanted = (replace(inputs[0], value=replace(ref, field=name)) for name in rest)
        count = sum(
            1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(wanted, inputs, strict=False))
        )
        if count > 1:
            return array.width_bits, layout.field(ref, late=False), count
    return None


def csum16_terms(to: Code, inputs: tuple[HashInput, ...]) -> list[tuple[str, str]] | None:
    """(validity, addend) of each input when every header's share is whole 16-bit words.

    A sum of 16-bit words modulo 2^16 - 1 does not care for carries between words: a field counts as
    its value shifted to its place within a word.
    """
    if any(item.payload for item in inputs):
        return None
    runs: list[tuple[str, list[HashInput]]] = []
    for item in inputs:
        if not runs or runs[-1][0] != item.header:
            runs.append((item.header, []))
        runs[-1][1].append(item)
    terms = []
    for header, items in runs:
        length = sum(item.width_bits for item in items)
        if length % 16:
            return None
        position, addends = length, []
        for item in items:
            position -= item.width_bits
            shift = position % 16
            value = to.expr.stored(item.value, item.width_bits)
            if item.width_bits > 48:
                if item.width_bits > 64 or shift:
                    return None
                addends.append(f"((uint64_t){value} >> 32) + ((uint64_t){value} & 0xffffffffu)")
            elif value != "0":
                addends.append(f"((uint64_t){value} << {shift})" if shift else f"(uint64_t){value}")
        terms.append((to.layout.valid(header) if header else "", " + ".join(addends) or "0"))
    return terms


def emit_csum16(to: Code, inputs: tuple[HashInput, ...], name: str) -> None:
    """``const uint16_t name = csum16(inputs)``."""
    terms = csum16_terms(to, inputs)
    if terms is None:
        to.out.line(f"uint16_t {name};")
        with to.out.block(""):
            emit_bits(to, tuple(item for item in inputs if not item.payload))
            code = "ina_hash_csum16(bits)"
            if any(item.payload for item in inputs):
                if not to.layout.memory.payload:
                    raise UnsupportedProgramError("a checksum over what no header holds")
                code = f"ina_csum16_payload(bits, {to.layout.memory.payload})"
            to.out.line(f"{name} = (uint16_t){code};")
        return
    to.out.line(f"uint64_t {name}_sum = 0;")
    for valid, addend in terms:
        guard = f"if ({valid}) " if valid else ""
        to.out.line(f"{guard}{name}_sum += {addend};")
    to.out.line(f"const uint16_t {name} = ina_csum16_finish({name}_sum);")


def wire_csum16(layout: Layout, plan: ChecksumPlan, written: AbstractSet[str]) -> tuple[str, str]:
    """A header's checksum as two sums: of ``written`` fields, and of the rest, loaded as it stands.

    The plan says (``from_packet``) that the inputs lie as on the wire. The second sum is
    of the packet's own bytes, so that it is the same for all copies; a sum of 16-bit words does not
    care for their byte order, if its result is swapped (RFC 1071, section 2 (B)).
    """
    header = plan.checksum.target.header
    wire = layout.wire(header)
    by_name = layout.program.headers[header].type.by_name
    terms = []
    kept: Counter[int] = Counter()  # by 16-bit word: the bits that stand in the packet
    for item in plan.checksum.inputs:
        assert isinstance(item.value, FieldRef)
        field = by_name[item.value.field]
        if field.name in written:
            value, shift = f"(uint64_t){layout.field(item.value, late=False)}", -_end(field) % 16
            terms.append(f"({value} << {shift})" if shift else value)
            continue
        for bit in range(field.offset_bits, _end(field)):
            kept[bit // 16] |= 0x8000 >> bit % 16
    loads = []
    words = sorted(kept)
    while words:
        at = words.pop(0)
        if words and words[0] == at + 1 and kept[at] == kept[at + 1] == 0xFFFF:
            words.pop(0)
            loads.append(f"ina_load_raw({wire} + {2 * at}, 4)")
            continue
        mask = "" if kept[at] == 0xFFFF else f" & {kept[at] >> 8 | (kept[at] & 0xFF) << 8:#x}"
        loads.append(f"(ina_load_raw({wire} + {2 * at}, 2){mask})")
    return " + ".join(terms) or "0", " + ".join(loads) or "0"


def _end(field: Field) -> int:
    return field.offset_bits + field.width_bits
