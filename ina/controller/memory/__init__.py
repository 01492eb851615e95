"""Who gets which of a switch's slots, and how many."""

from __future__ import annotations

from ina.controller.memory.allocator import Allocator
from ina.controller.memory.chosen import allocator_for
from ina.controller.memory.first_fit import FirstFit
from ina.controller.memory.ranges import MAX_JOB_SLOTS, MIN_JOB_SLOTS, SlotRange, lanes_of
from ina.controller.memory.shared_slots import SharedSlots
from ina.controller.memory.static_pool import StaticPool

__all__ = [
    "MAX_JOB_SLOTS",
    "MIN_JOB_SLOTS",
    "Allocator",
    "FirstFit",
    "SharedSlots",
    "SlotRange",
    "StaticPool",
    "allocator_for",
    "lanes_of",
]
