"""What the configuration names."""

from __future__ import annotations

from ina.controller.config import JobsConfig
from ina.controller.memory.allocator import Allocator
from ina.controller.memory.buddies import Buddies
from ina.controller.memory.first_fit import FirstFit
from ina.controller.memory.static_pool import StaticPool
from ina.trees.slots import MAX_JOB_SLOTS


def allocator_for(config: JobsConfig, total: int) -> Allocator:
    """The allocator that the configuration names, for a switch of ``total`` slots."""
    if config.resizes:
        return Buddies(total, config.slots)
    if config.gives_what_is_asked:
        return FirstFit(total, config.slots)
    if config.sizing == "equal":
        share = min(total // config.count, MAX_JOB_SLOTS)
        return StaticPool(total, share - share % 2)
    return StaticPool(total, config.slots)
