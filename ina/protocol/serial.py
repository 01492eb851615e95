"""Serial-number arithmetic (RFC 1982) on 32-bit numbers that wrap around.

``a`` is newer than ``b`` when it is 1 to 2**31 - 1 ahead of it. At a distance of exactly 2**31 the
RFC leaves the order open; here neither is newer, and a slot drops the contribution as stale.
"""

from __future__ import annotations

SERIAL_BITS = 32
_MASK = (1 << SERIAL_BITS) - 1


def add(a: int, distance: int) -> int:
    """Returns ``a`` moved by ``distance`` (which may be negative), wrapped to 32 bits."""
    return (a + distance) & _MASK


def is_newer(a: int, b: int) -> bool:
    """Returns whether ``a`` comes after ``b``."""
    return 0 < (a - b) & _MASK < 1 << (SERIAL_BITS - 1)
