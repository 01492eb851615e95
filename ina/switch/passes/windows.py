"""What makes a packet a usual one, as runs of its bytes that are compared at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ina.switch.passes.main_path import Match


@dataclass(frozen=True)
class ByteWindow:
    """``packet[first:first + len(mask)] & mask == value``."""

    first_byte: int
    mask: bytes
    value: bytes


def find_windows(
    matches: Sequence[Match], size_bytes: int, headers_bytes: int
) -> tuple[ByteWindow, ...]:
    """They lie before the first late array (``headers_bytes``), whose bytes may be elsewhere."""
    mask, value = bytearray(size_bytes), bytearray(size_bytes)
    for first_bit, width, bits, wanted in matches:
        for number in range(width):
            bit, below = first_bit + number, width - 1 - number
            if bits >> below & 1:
                mask[bit // 8] |= 0x80 >> bit % 8
                value[bit // 8] |= (wanted >> below & 1) * (0x80 >> bit % 8)
    return tuple(
        ByteWindow(first, bytes(mask[first : first + size]), bytes(value[first : first + size]))
        for first, size in split(mask, headers_bytes)
    )


def split(mask: Sequence[int], end: int) -> list[tuple[int, int]]:
    """Parts (first byte, bytes) before ``end`` that together hold every byte with a mask.

    64 bytes, or what fits: a vector compares them at once. The last one ends where it may.
    """
    parts: list[tuple[int, int]] = []
    at = 0
    while any(mask[at:]):
        first = next(number for number in range(at, len(mask)) if mask[number])
        last = max(number for number in range(len(mask)) if mask[number])
        if end >= 64 and last >= end - 64 and first >= end - 64 and last < end:
            return [*parts, (end - 64, 64)]
        sizes = (64, 32, 16, 8, 4, 2)
        fits = (n for n in sizes if first + n <= end and last - first >= n // 2)
        size = next(fits, 1)
        parts.append((first, size))
        at = first + size
    return parts
