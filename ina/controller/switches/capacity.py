"""What jobs can have on one switch: slots, a window, ports of one pipe. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ina.controller.job import lanes_of
from ina.controller.memory import Allocator, SlotRange
from ina.p4 import names

PipeOf = Callable[[int], int]
"""The pipe of a port's number."""


def one_pipe(port: int) -> int:
    """Of switches whose registers serve all their ports."""
    return 0


def always() -> bool:
    """Of switches that are reached whenever they are asked."""
    return True


@dataclass
class Capacity:
    """Of one switch, in one term of a controller."""

    memory: Allocator
    """Who has which of its slots."""
    max_window: int = 0
    """Packets in flight that its queues bear from a worker; 0: any number."""
    pipe_of: PipeOf = one_pipe
    members: int = names.MEMBERS_TOTAL
    """Rows of receivers: workers of all of its jobs."""
    values: int = 0
    """A packet: all switches of a tree sum as many."""
    is_reached: Callable[[], bool] = always
    """Whether entries of jobs can be written to it now, as far as is known."""
    foreign_numbers: set[int] = field(default_factory=set)
    """Job numbers that entries of nobody's on it name: they are not handed out."""

    def set_foreign(self, numbers: Iterable[int], slots: Iterable[range]) -> None:
        """Says which job numbers and slots entries of nobody's on the switch name.

        They are not handed out. Replaces what was said before.
        """
        self.foreign_numbers = set(numbers)
        self.memory.block(slots)

    def window(self, memory: SlotRange) -> int:
        """Packets in flight that a worker of a job with these slots may have."""
        lanes = lanes_of(memory.slots)
        return min(lanes, self.max_window or lanes)
