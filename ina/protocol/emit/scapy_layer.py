"""Emits the scapy layer; scapy is GPL and optional, so only the generated module imports it."""

from __future__ import annotations

from enum import IntEnum

from ina.protocol import spec
from ina.protocol.emit.notice import notice
from ina.protocol.layout import LAYOUT

_CLASSES = {8: "ByteField", 16: "ShortField", 32: "IntField"}
_ENUMS = {"kind": ("KINDS", spec.Kind), "value_type": ("VALUE_TYPES", spec.ValueType)}


def render() -> str:
    """Returns the text of ``ina/protocol/generated/scapy_layer.py``."""
    return "\n".join(
        [
            *notice("#"),
            '"""The ina header as a scapy layer; importing this module registers it with UDP."""',
            "",
            "from scapy.fields import (",
            "    BitEnumField, BitField, BitFieldLenField, ByteField, FieldListField, FlagsField,",
            "    IntField, ShortField, SignedIntField,",
            ")",
            "from scapy.layers.inet import UDP",
            "from scapy.packet import Packet, bind_layers",
            "",
            f"UDP_PORT = {spec.UDP_PORT}",
            *(_names(name, members) for name, members in _ENUMS.values()),
            f"FLAGS = {[flag.name.lower() for flag in spec.Flag if flag.name]!r}",
            "",
            "",
            "class INA(Packet):",
            f'    """{spec.HEADER_BYTES} bytes behind UDP, then value_count int32 values."""',
            "",
            '    name = "INA"',
            "    fields_desc = [",
            *(f"        {_field(field)}," for field in spec.FIELDS),
            '        FieldListField("values", [], SignedIntField("value", 0),',
            "                       count_from=lambda packet: packet.value_count,",
            f"                       max_count={_largest('value_count')}),",
            "    ]",
            "",
            "",
            "bind_layers(UDP, INA, dport=UDP_PORT)",
            "bind_layers(UDP, INA, sport=UDP_PORT)",
            "",
        ]
    )


def _largest(name: str) -> int:
    return next(field.mask for field in LAYOUT if field.name == name)


def _names(name: str, members: type[IntEnum]) -> str:
    return f"{name} = { ({member.value: member.name.lower() for member in members})!r}"


def scapy_name(name: str) -> str:
    """A field's name there: ``copy`` is a method of every packet."""
    return "copy_number" if name == "copy" else name


def _field(field: spec.Field) -> str:
    if field.name == "version":
        return f'BitField("version", {spec.VERSION}, {field.bits})'
    if field.name == "value_count":
        return f'BitFieldLenField("value_count", None, {field.bits}, count_of="values")'
    if field.name == "flags":
        return f'FlagsField("flags", 0, {field.bits}, FLAGS)'
    if field.name in _ENUMS:
        names, members = _ENUMS[field.name]
        return f'BitEnumField("{field.name}", {min(members).value}, {field.bits}, {names})'
    if field.bits in _CLASSES:
        return f'{_CLASSES[field.bits]}("{scapy_name(field.name)}", 0)'
    return f'BitField("{field.name}", 0, {field.bits})'
