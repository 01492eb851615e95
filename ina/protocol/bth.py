"""InfiniBand's base transport header (BTH): the 12 bytes behind UDP port 4791 of a RoCEv2 packet.

Source: InfiniBand Architecture Specification, volume 1, section 9.2 (fields, opcodes), and its
annex A17 (RoCEv2: the port, and FECN and BECN in what were reserved bits).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from ina.protocol.errors import FieldRangeError, TruncatedPacketError

BTH_BYTES = 12
ROCE_UDP_PORT = 4791
"""IANA's for RoCEv2; the source port is the NIC's choice, and names nobody."""
DEFAULT_PKEY = 0xFFFF
PSN_BITS = 24
QP_BITS = 24


class Opcode(IntEnum):
    """Of SENDs without immediate data, on reliable (RC) and unreliable (UC) connections, and of
    what their receivers say.

    A message of one packet is ONLY; a longer one FIRST, any number of MIDDLE, LAST.
    """

    RC_SEND_FIRST = 0x00
    RC_SEND_MIDDLE = 0x01
    RC_SEND_LAST = 0x02
    RC_SEND_ONLY = 0x04
    RC_ACKNOWLEDGE = 0x11
    """ACK or NAK, as what follows BTH says (AETH, section 9.3.5)."""
    UC_SEND_FIRST = 0x20
    UC_SEND_MIDDLE = 0x21
    UC_SEND_LAST = 0x22
    UC_SEND_ONLY = 0x24
    CONGESTION_NOTIFICATION = 0x81
    """CNP, of annex A17: a packet came with CE."""


UC_SENDS = (
    Opcode.UC_SEND_FIRST,
    Opcode.UC_SEND_MIDDLE,
    Opcode.UC_SEND_LAST,
    Opcode.UC_SEND_ONLY,
)

RC_SENDS = (
    Opcode.RC_SEND_FIRST,
    Opcode.RC_SEND_MIDDLE,
    Opcode.RC_SEND_LAST,
    Opcode.RC_SEND_ONLY,
)
REPLIES = (Opcode.RC_ACKNOWLEDGE, Opcode.CONGESTION_NOTIFICATION)
"""What the receiver of SENDs sends to their sender."""

_WIDTHS = {
    "opcode": 8,
    "solicited": 1,
    "migrated": 1,
    "pad_bytes": 2,
    "version": 4,
    "pkey": 16,
    "congestion": 8,
    "dest_qp": QP_BITS,
    "ack_request": 1,
    "reserved": 7,
    "psn": PSN_BITS,
}
"""Bits of each field, in the order of the wire."""


@dataclass(frozen=True)
class Bth:
    """The header, field by field. Numbers that an opcode or a reserved bit may not have pass: what
    a receiver makes of them is its own affair."""

    opcode: int
    """8 bits, see :class:`Opcode`."""
    dest_qp: int
    """The receiver's queue pair, 24 bits."""
    psn: int
    """Packet sequence number, 24 bits."""
    solicited: int = 0
    """1: the receiver wants to be woken for it."""
    migrated: int = 1
    """MigReq: 1 is what queue pairs say that never change their path."""
    pad_bytes: int = 0
    """0..3, behind the payload, which is made of whole words."""
    version: int = 0
    """Of the transport header: 0."""
    pkey: int = DEFAULT_PKEY
    """Partition, 16 bits."""
    congestion: int = 0
    """FECN, BECN and six reserved bits: ICRC takes them as ones."""
    ack_request: int = 0
    reserved: int = 0
    """7 bits, which ICRC covers."""


def encode_bth(bth: Bth) -> bytes:
    """Returns the 12 bytes. Raises FieldRangeError: a number does not fit its field."""
    whole = 0
    for name, bits in _WIDTHS.items():
        value = getattr(bth, name)
        if not 0 <= value < 1 << bits:
            raise FieldRangeError(f"BTH {name} {value} does not fit {bits} bits")
        whole = whole << bits | value
    return whole.to_bytes(BTH_BYTES, "big")


def decode_bth(data: bytes | memoryview) -> Bth:
    """Returns the header at the start of a UDP payload, whatever follows it.

    Raises TruncatedPacketError: fewer than 12 bytes.
    """
    if len(data) < BTH_BYTES:
        raise TruncatedPacketError(f"{len(data)} bytes are no BTH, which has {BTH_BYTES}")
    whole = int.from_bytes(data[:BTH_BYTES], "big")
    fields = {}
    for name, bits in reversed(_WIDTHS.items()):
        fields[name] = whole & (1 << bits) - 1
        whole >>= bits
    return Bth(**fields)
