"""Who gets which of a switch's slots, and how many."""

from __future__ import annotations

from ina.controller.memory.allocators import (
    Allocator,
    FirstFit,
    SharedSlots,
    StaticPool,
    allocator_for,
)

__all__ = [
    "Allocator",
    "FirstFit",
    "SharedSlots",
    "StaticPool",
    "allocator_for",
]
