"""Emits the P4 header and constants, included by every P4 program of ina."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, IntFlag

from ina.protocol import spec
from ina.protocol.emit.notice import notice


def _field_bits(name: str) -> int:
    return next(field.bits for field in spec.FIELDS if field.name == name)


def _constants(
    prefix: str, bits: int, members: Iterable[IntEnum | IntFlag], form: str = "{}"
) -> list[str]:
    return [
        f"const bit<{bits}> INA_{prefix}_{member.name} = {form.format(member.value)};"
        for member in members
    ]


def render() -> str:
    """Returns the text of ``ina/p4/shared/ina_header.p4``."""
    rows = [(f"bit<{field.bits}>", f"{field.name};", field.meaning) for field in spec.FIELDS]
    whole_words = [it for it in spec.ValueType if it == it.element]
    type_width, name_width = (max(len(row[column]) for row in rows) for column in (0, 1))
    fields = [
        f"    {bits:<{type_width}} {name:<{name_width}} // {meaning}"
        for bits, name, meaning in rows
    ]
    lines = [
        *notice("//"),
        "",
        "#ifndef INA_HEADER_P4",
        "#define INA_HEADER_P4",
        "",
        f"const bit<4> INA_VERSION = {spec.VERSION};",
        f"const bit<16> INA_UDP_PORT = {spec.UDP_PORT};",
        f"const bit<16> INA_HEADER_BYTES = {spec.HEADER_BYTES};",
        f"const bit<16> INA_VALUE_BYTES = {spec.VALUE_BYTES};",
        f"const bit<8> INA_MAX_WORKERS = {spec.MAX_WORKERS};",
        f"const bit<8> INA_PARENT = {spec.PARENT}; // worker of a sum on its way to the parent",
        f"const bit<8> INA_EXPONENT_BIAS = {spec.EXPONENT_BIAS};",
        "const bit<8> INA_EXPONENT_ALL_ZERO = 0;",
        "",
        *_constants("KIND", _field_bits("kind"), spec.Kind),
        "",
        *_constants("FLAG", _field_bits("flags"), spec.Flag, "0x{:02x}"),
        "",
        *_constants("SHAPE", _field_bits("shape"), spec.Shape),
        "",
        # How many values are in a word is nothing to a switch.
        *_constants("VALUE_TYPE", _field_bits("value_type"), whole_words),
        "",
        "// Index of the counter of dropped INA packets.",
        *_constants("DROP", 8, spec.DropReason),
        f"const bit<32> INA_DROP_REASONS = {len(spec.DropReason)};",
        "",
        f"// {spec.HEADER_BYTES} bytes behind UDP; value_count int32 values follow.",
        "header ina_h {",
        *fields,
        "}",
        "",
        "#endif // INA_HEADER_P4",
    ]
    return "\n".join(lines) + "\n"
