"""A header's fields to its bytes, as C."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from ina.switch.emit.c_types import load_field
from ina.switch.emit.layout import TypeLayout
from ina.switch.emit.writer import Writer
from ina.switch.ir.data import Field
from ina.switch.passes.storage import array_names


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


def copy_unwritten(layout: TypeLayout, wire: str, written: AbstractSet[str], out: Writer) -> None:
    """The header's bytes as they came, except arrays that are stored anyway."""
    header_type = layout.storage.type
    start, end = 0, header_type.width_bits // 8
    for array in layout.arrays:
        first = header_type.fields[array.first].offset_bits // 8
        if not written.isdisjoint(array_names(header_type, array)):
            copy_bytes(start, first, wire, out)
            start = first + array.count * array.width_bits // 8
    copy_bytes(start, end, wire, out)


def copy_bytes(start: int, end: int, wire: str, out: Writer) -> None:
    """Those from .. to."""
    if end > start:
        out.line(f"memcpy(at + {start}, {wire} + {start}, {end - start});")
