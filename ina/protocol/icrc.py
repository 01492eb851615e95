"""RoCEv2's invariant CRC: what ends a packet, and covers what no switch on the way may change.

Source: InfiniBand Architecture Specification, volume 1, section 7.8.1, and its annex A17 (RoCEv2).
It is Ethernet's CRC-32 over 8 bytes of ones, which stand for InfiniBand's own local header, and the
packet from the IPv4 header to the last byte of the payload, with ones in place of TOS, TTL, the IP
header's checksum, UDP's checksum, and BTH's fifth byte (FECN, BECN, reserved). It is stored with
its low byte first, as Ethernet's is.
"""

from __future__ import annotations

import zlib

from ina.protocol.bth import BTH_BYTES
from ina.protocol.errors import IcrcError, TruncatedPacketError

ICRC_BYTES = 4
ICRC_PREFIX = b"\xff" * 8
"""What stands for InfiniBand's local header."""
_IPV4_BYTES, _UDP_BYTES = 20, 8
_BTH_OFFSET = _IPV4_BYTES + _UDP_BYTES
MASKED_OFFSETS = (1, 8, 10, 11, _IPV4_BYTES + 6, _IPV4_BYTES + 7, _BTH_OFFSET + 4)
"""Bytes of the IPv4 packet (its header has no options) that may change on the way."""
_HEADERS_BYTES = _BTH_OFFSET + BTH_BYTES


def icrc(packet: bytes | memoryview) -> bytes:
    """Returns the four bytes that belong behind an IPv4 packet: header without options, UDP, BTH,
    payload.

    Raises TruncatedPacketError: it is shorter than its headers.
    """
    if len(packet) < _HEADERS_BYTES:
        raise TruncatedPacketError(
            f"{len(packet)} bytes are no RoCEv2 packet, whose headers have {_HEADERS_BYTES}"
        )
    headers = bytearray(packet[:_HEADERS_BYTES])
    for offset in MASKED_OFFSETS:
        headers[offset] = 0xFF
    crc = zlib.crc32(packet[_HEADERS_BYTES:], zlib.crc32(headers, zlib.crc32(ICRC_PREFIX)))
    return crc.to_bytes(ICRC_BYTES, "little")


def without_icrc(packet: bytes | memoryview) -> memoryview:
    """Returns the IPv4 packet in front of its ICRC.

    Raises TruncatedPacketError (no room for headers and ICRC), IcrcError (another than its own).
    """
    end = len(packet) - ICRC_BYTES
    covered = memoryview(packet)[: max(end, 0)]
    wanted, found = icrc(covered), bytes(packet[end:])
    if found != wanted:
        raise IcrcError(f"ICRC {found.hex()} of {len(packet)} bytes, expected {wanted.hex()}")
    return covered
