"""How many slots each job should have: the interface of the policies. They are pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol

from ina.controller.memory.demand import Demand

Sizes = Mapping[str, int]
"""Slots by name of the job; 0: none, it waits."""


class Policy(Protocol):
    """Says how to share out the slots of one switch. Neither state, clock nor I/O."""

    name: ClassVar[str]
    """As the configuration has it."""
    resizes: ClassVar[bool]
    """Whether jobs' sizes change while they run."""

    def sizes(self, jobs: Sequence[Demand], total: int) -> Sizes:
        """Slots for each of ``jobs``, ``total`` together at most.

        A job that runs (has slots) gets its floor at least; one that does not may get nothing.
        Sizes that the policy chooses are powers of two, as others cannot be used in full.
        """
        ...

    def order(self, waiting: Sequence[Demand]) -> list[Demand]:
        """Who of those that wait for slots is served first."""
        ...
