"""Who gets which of a switch's slots, and how many."""

from __future__ import annotations

from ina.controller.memory.allocators import Allocator, FirstFit, StaticPool, allocator_for
from ina.controller.memory.shared_slots import SharedSlots

__all__ = [
    "Allocator",
    "FirstFit",
    "SharedSlots",
    "StaticPool",
    "allocator_for",
]
