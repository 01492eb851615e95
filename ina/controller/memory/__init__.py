"""Who gets which of a switch's slots, and how many."""

from __future__ import annotations

from ina.controller.memory.allocator import Allocator
from ina.controller.memory.chosen import allocator_for
from ina.controller.memory.first_fit import FirstFit
from ina.controller.memory.shared_slots import SharedSlots
from ina.controller.memory.static_pool import StaticPool

__all__ = [
    "Allocator",
    "FirstFit",
    "SharedSlots",
    "StaticPool",
    "allocator_for",
]
