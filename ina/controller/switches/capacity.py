"""What jobs can have on one switch: slots, a window, ports of one pipe. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ina.controller.errors import NoRoomError
from ina.controller.memory import Allocator, SharedSlots
from ina.p4 import names
from ina.trees.slots import SlotRange

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
    """Who has which of its slots, but for those that jobs share."""
    max_window: int = 0
    """Packets in flight that its queues bear from a worker; 0: any number."""
    pipe_of: PipeOf = one_pipe
    members: int = names.MEMBERS_TOTAL
    """Rows of receivers: workers of all of its jobs."""
    values: int = 0
    """A packet: all switches of a tree sum as many."""
    is_reached: Callable[[], bool] = always
    """Whether entries of jobs can be written to it now, as far as is known."""
    shared: SharedSlots | None = None
    """Those that jobs of mode ``shared`` share; None: it runs the program of mode ``pool``."""
    is_aggregator: bool = False
    """Whether it can be the root of such jobs' trees."""
    program: str = names.DEFAULT_MODE
    """The mode whose program it runs."""
    is_switch: bool = True
    """Whether it is on the way between workers; else it is an aggregator and nothing else."""
    expands: bool = True
    """Whether a header that comes to it alone can leave with values."""
    foreign_numbers: set[int] = field(default_factory=set)
    """Job numbers that entries of nobody's on it name: they are not handed out."""

    @property
    def total(self) -> int:
        """Its slots."""
        return self.memory.total + (0 if self.shared is None else self.shared.total)

    def used(self) -> int:
        """Slots that some job has, or may claim."""
        return self.memory.used() + (0 if self.shared is None else self.shared.used())

    def set_foreign(self, numbers: Iterable[int], slots: Iterable[range]) -> None:
        """Says which job numbers and slots entries of nobody's on the switch name.

        They are not handed out. Replaces what was said before.
        """
        self.foreign_numbers = set(numbers)
        self.memory.block(slots)

    def give_back(self, taken: SlotRange, *, is_shared: bool) -> None:
        """Frees what a job had here. ``is_shared``: of the slots that jobs share."""
        if is_shared and self.shared is not None:
            self.shared.give_back(taken)
        else:
            self.memory.give_back(taken)

    def claim(self, taken: SlotRange, *, is_shared: bool, over: SlotRange | None = None) -> None:
        """Takes what a job had here before the controller started.

        See :meth:`Allocator.claim`. Raises :class:`NoRoomError`.
        """
        if not is_shared:
            self.memory.claim(taken, over=over)
        elif self.shared is None:
            raise NoRoomError("the switch shares no slots any more")
        else:
            self.shared.claim(taken)
