"""PacketOut and PacketIn: controller metadata as the bits of the controller headers."""

from __future__ import annotations

from collections.abc import Sequence

from finsy.proto import p4r

from ina.switch.p4runtime.bits import decode, encode
from ina.switch.p4runtime.schema import FieldSchema
from ina.switch.p4runtime.status import invalid

MAX_PACKET_BYTES = 65535


def packet_from_message(fields: Sequence[FieldSchema], message: p4r.PacketOut) -> bytes:
    """The packet as the CPU port sends it: the packet_out header, then the payload."""
    values = {m.metadata_id: m.value for m in message.metadata}
    if len(values) != len(message.metadata) or values.keys() != {f.id for f in fields}:
        wanted = ", ".join(f"{f.name} ({f.id})" for f in fields) or "none"
        raise invalid(f"packet_out: expected metadata: {wanted}")
    header = 0
    for field in fields:
        value = decode(values[field.id], field.width_bits, f"packet_out, {field.name}")
        header = header << field.width_bits | value
    packet = header.to_bytes(_header_bytes(fields), "big") + message.payload
    if len(packet) > MAX_PACKET_BYTES:
        raise invalid(f"packet_out: {len(packet)} bytes, more than {MAX_PACKET_BYTES}")
    return packet


def message_from_packet(fields: Sequence[FieldSchema], packet: bytes) -> p4r.PacketIn | None:
    """What the pipeline sent to the CPU port; None if it is shorter than the packet_in header."""
    size = _header_bytes(fields)
    if len(packet) < size:
        return None
    header = int.from_bytes(packet[:size], "big")
    left_bits = size * 8
    message = p4r.PacketIn(payload=packet[size:])
    for field in fields:
        left_bits -= field.width_bits
        value = header >> left_bits & ((1 << field.width_bits) - 1)
        message.metadata.add(metadata_id=field.id, value=encode(value))
    return message


def _header_bytes(fields: Sequence[FieldSchema]) -> int:
    return sum(field.width_bits for field in fields) // 8
