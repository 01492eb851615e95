"""Emits the scapy layer; scapy is GPL and optional, so only the generated module imports it."""

from __future__ import annotations

from enum import IntEnum

from ina.protocol import spec
from ina.protocol.bth import RC_SENDS, UC_SENDS, Opcode
from ina.protocol.emit.notice import notice
from ina.protocol.layout import LAYOUT

_CLASSES = {8: "ByteField", 16: "ShortField", 32: "IntField"}
_ENUMS = {
    "kind": ("KINDS", spec.Kind),
    "shape": ("SHAPES", spec.Shape),
    "value_type": ("VALUE_TYPES", spec.ValueType),
}


def render() -> str:
    """Returns the text of ``ina/protocol/generated/scapy_layer.py``."""
    return "\n".join(
        [
            *notice("#"),
            '"""The ina header as a scapy layer; importing this registers it with UDP and BTH."""',
            "",
            "from scapy.contrib.roce import BTH",
            "from scapy.fields import (",
            "    BitEnumField, BitField, BitFieldLenField, ByteField, FieldListField, FlagsField,",
            "    IntField, ShortField, SignedIntField, XBitField,",
            ")",
            "from scapy.layers.inet import UDP",
            "from scapy.packet import Packet, Raw, bind_bottom_up, bind_layers",
            "",
            f"UDP_PORT = {spec.UDP_PORT}",
            *(_names(name, members) for name, members in _ENUMS.values()),
            f"FLAGS = {[flag.name.lower() for flag in spec.Flag if flag.name]!r}",
            "",
            "",
            "class INA(Packet):",
            f'    """{spec.HEADER_BYTES} bytes behind UDP or BTH, then value_count values."""',
            "",
            '    name = "INA"',
            "    fields_desc = [",
            *(f"        {_field(field)}," for field in spec.FIELDS),
            '        FieldListField("values", [], SignedIntField("value", 0),',
            "                       count_from=lambda packet: packet.value_count,",
            f"                       max_count={_largest('value_count')}),",
            "    ]",
            "",
            "    @classmethod",
            "    def dispatch_hook(",
            "        cls, _pkt: bytes = b'', *args: object, **kargs: object",
            "    ) -> type[Packet]:",
            '        """What others SEND over RoCEv2 is left as bytes."""',
            "        is_sent = isinstance(kargs.get('_underlayer'), BTH)",
            f"        is_own = _pkt[:1] and _pkt[0] >> 4 == {spec.VERSION}",
            "        return Raw if is_sent and not is_own else cls",
            "",
            "",
            "bind_layers(UDP, INA, dport=UDP_PORT)",
            "bind_layers(UDP, INA, sport=UDP_PORT)",
            f"bind_layers(BTH, INA, opcode={Opcode.UC_SEND_ONLY:#x})",
            f"for opcode in ({', '.join(f'{it:#x}' for it in (*UC_SENDS, *RC_SENDS))}):",
            "    bind_bottom_up(BTH, INA, opcode=opcode)",
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
    if field.name == "path":
        return f'XBitField("path", 0, {field.bits})'
    if field.bits in _CLASSES:
        return f'{_CLASSES[field.bits]}("{scapy_name(field.name)}", 0)'
    return f'BitField("{field.name}", 0, {field.bits})'
