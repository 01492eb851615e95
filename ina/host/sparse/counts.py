"""What sparse sums have counted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BlockCounts:
    """Of sums that have ended well."""

    sums: int = 0
    blocks: int = 0
    """Of their arrays."""
    own: int = 0
    """Of those, not zero on this rank."""
    union: int = 0
    """Of those, not zero on some rank."""


NO_BLOCKS = BlockCounts()
