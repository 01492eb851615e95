"""Hashes and checksums of v1model, over fields one after another, bit by bit."""

from __future__ import annotations

import binascii
from collections.abc import Callable


def to_bytes(values: list[tuple[int, int]]) -> bytes:
    """(value, width in bits) each, the last byte filled with zeros."""
    total = bits = 0
    for value, width in values:
        total = total << width | value & (1 << width) - 1
        bits += width
    spare = -bits % 8
    return (total << spare).to_bytes((bits + spare) // 8, "big")


def _words(data: bytes) -> list[int]:
    padded = data + b"\0" * (len(data) % 2)
    return [int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2)]


def csum16(data: bytes) -> int:
    """The Internet's checksum (RFC 1071)."""
    total = sum(_words(data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def xor16(data: bytes) -> int:
    """All 16-bit words, exclusive or."""
    found = 0
    for word in _words(data):
        found ^= word
    return found


def crc16(data: bytes) -> int:
    """CRC-16/ARC."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


def identity(data: bytes) -> int:
    """The first eight bytes as a number."""
    return int.from_bytes(data[:8], "big")


ALGORITHMS: dict[str, Callable[[bytes], int]] = {
    "csum16": csum16,
    "xor16": xor16,
    "crc16": crc16,
    "crc32": binascii.crc32,
    "identity": identity,
}
