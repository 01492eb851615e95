"""P4Runtime byte strings: big-endian, any length in, the shortest out (spec, "Bytestrings")."""

from __future__ import annotations

from ina.switch.p4runtime.status import out_of_range


def decode(data: bytes, width_bits: int, what: str) -> int:
    """The unsigned value of ``data``; OUT_OF_RANGE if it is empty or needs more than the width."""
    if not data:
        raise out_of_range(f"{what}: empty byte string")
    value = int.from_bytes(data, "big")
    if value.bit_length() > width_bits:
        raise out_of_range(f"{what}: {value:#x} does not fit in {width_bits} bits")
    return value


def encode(value: int) -> bytes:
    """Canonical form: no leading zero bytes, one byte for 0."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
