"""Match fields: P4Runtime messages to the pipeline's key matches, and back in canonical form.

The key of an entry is kept with every field present: a "don't care" field, which P4Runtime leaves
out, is a match of everything. An optional field is a ternary one with a full or an empty mask, as
p4c writes it.
"""

from __future__ import annotations

from collections.abc import Iterable

from finsy.proto import p4r

from ina.switch.ir.program import KeyValue, MatchKind
from ina.switch.match import Exact, KeyMatch, Lpm, Range, Ternary
from ina.switch.p4runtime.bits import decode, encode
from ina.switch.p4runtime.schema import FieldSchema, TableSchema
from ina.switch.p4runtime.status import invalid, unimplemented

Key = tuple[KeyMatch, ...]


def parse_key(table: TableSchema, matches: Iterable[p4r.FieldMatch]) -> Key:
    """The entry's key in the program's order. Raises a StatusError naming the field."""
    given: dict[int, p4r.FieldMatch] = {}
    for match in matches:
        if match.field_id in given:
            raise invalid(f"{table.name}: match field {match.field_id} is given twice")
        given[match.field_id] = match
    key = []
    for field in table.fields:
        sent = given.pop(field.id, None)
        key.append(_dont_care(table, field) if sent is None else _parse(table, field, sent))
    if given:
        raise invalid(f"{table.name}: no match field with id {next(iter(given))}")
    return tuple(key)


def check_priority(table: TableSchema, priority: int) -> None:
    """A priority is needed exactly where entries may overlap (ternary, range, optional)."""
    if table.needs_priority and priority <= 0:
        raise invalid(f"{table.name}: priority must be positive (it has ternary matches)")
    if not table.needs_priority and priority != 0:
        raise invalid(f"{table.name}: priority must be 0 (it has no ternary matches)")


def refuse_string(field: FieldSchema, what: str) -> None:
    """A value that the client gives as a string cannot be written."""
    if field.is_string:
        raise unimplemented(f"{what}: a string (p4runtime_translation)")


def format_key(table: TableSchema, key: Key) -> list[p4r.FieldMatch]:
    """The messages that :func:`parse_key` reads as ``key``."""
    found = (_format(field, match) for field, match in zip(table.fields, key, strict=True))
    return [match for match in found if match is not None]


def key_of_const(table: TableSchema, values: Iterable[KeyValue]) -> Key:
    """The key of an entry that is written in the program."""
    key: list[KeyMatch] = []
    for field, value in zip(table.fields, values, strict=True):
        full = _full(field)
        match field.kind:
            case MatchKind.EXACT:
                key.append(Exact(value.value))
            case MatchKind.LPM:
                key.append(Lpm(value.value, (value.mask & full).bit_count()))
            case MatchKind.TERNARY | MatchKind.OPTIONAL:
                key.append(Ternary(value.value & value.mask & full, value.mask & full))
            case MatchKind.RANGE:
                key.append(Range(value.value, value.mask & full))
    return tuple(key)


def _full(field: FieldSchema) -> int:
    return (1 << field.width_bits) - 1


def _dont_care(table: TableSchema, field: FieldSchema) -> KeyMatch:
    match field.kind:
        case MatchKind.EXACT:
            raise invalid(f"{table.name}: exact match field {field.name} is missing")
        case MatchKind.LPM:
            return Lpm(0, 0)
        case MatchKind.TERNARY | MatchKind.OPTIONAL:
            return Ternary(0, 0)
        case MatchKind.RANGE:
            return Range(0, _full(field))


def _parse(table: TableSchema, field: FieldSchema, match: p4r.FieldMatch) -> KeyMatch:
    what = f"{table.name}, {field.name}"
    refuse_string(field, what)
    sent = match.WhichOneof("field_match_type")
    if sent != field.kind.value:
        raise invalid(f"{what}: is matched {field.kind.value}, not {sent}")
    width = field.width_bits
    match field.kind:
        case MatchKind.EXACT:
            return Exact(decode(match.exact.value, width, what))
        case MatchKind.LPM:
            return _lpm(what, width, match.lpm)
        case MatchKind.TERNARY:
            value = decode(match.ternary.value, width, what)
            mask = decode(match.ternary.mask, width, f"{what}, mask")
            if mask == 0:
                raise invalid(f"{what}: leave out a match on everything (mask 0)")
            if value & ~mask:
                raise invalid(f"{what}: value {value:#x} has bits outside of mask {mask:#x}")
            return Ternary(value, mask)
        case MatchKind.RANGE:
            low = decode(match.range.low, width, f"{what}, low")
            high = decode(match.range.high, width, f"{what}, high")
            if low > high:
                raise invalid(f"{what}: low {low:#x} is above high {high:#x}")
            if low == 0 and high == _full(field):
                raise invalid(f"{what}: leave out a match on everything (the full range)")
            return Range(low, high)
        case MatchKind.OPTIONAL:
            return Ternary(decode(match.optional.value, width, what), _full(field))


def _lpm(what: str, width: int, match: p4r.FieldMatch.LPM) -> Lpm:
    value = decode(match.value, width, what)
    if not 0 < match.prefix_len <= width:
        reason = (
            "leave out a match on everything" if match.prefix_len == 0 else f"not in 1..{width}"
        )
        raise invalid(f"{what}: prefix length {match.prefix_len}: {reason}")
    if value & ((1 << (width - match.prefix_len)) - 1):
        raise invalid(f"{what}: value {value:#x} has bits beyond its prefix of {match.prefix_len}")
    return Lpm(value, match.prefix_len)


def _format(field: FieldSchema, match: KeyMatch) -> p4r.FieldMatch | None:
    """None for "don't care"."""
    out = p4r.FieldMatch(field_id=field.id)
    match match:
        case Exact(value):
            out.exact.value = encode(value)
        case Lpm(_, 0) | Ternary(_, 0):
            return None
        case Lpm(value, prefix_bits):
            out.lpm.value = encode(value)
            out.lpm.prefix_len = prefix_bits
        case Ternary(value, _) if field.kind is MatchKind.OPTIONAL:
            out.optional.value = encode(value)
        case Ternary(value, mask):
            out.ternary.value = encode(value)
            out.ternary.mask = encode(mask)
        case Range(low, high):
            if low == 0 and high == _full(field):
                return None
            out.range.low = encode(low)
            out.range.high = encode(high)
    return out
