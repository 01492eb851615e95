"""A job as memory policies see it: how fast its steps are with so many slots, how many are left.

Pure numbers: who learned them, and how, is no concern of a policy.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

from ina.trees.slots import MAX_JOB_SLOTS, MIN_JOB_SLOTS

AS_LONG = 1.02
"""Steps that take so much longer, as a ratio, are taken to be as long."""


@dataclass(frozen=True)
class StepModel:
    """What a training step's time is made of.

    W packets in flight carry W payloads a round trip, beside what an aggregator carries, together
    up to the line's rate. A step takes its computation, and what of its communication does not hide
    behind it.
    """

    compute_s: float
    """A step's time but for waiting for sums."""
    overlap_s: float
    """So much of its communication happens meanwhile, if it has as much."""
    bytes: float
    """A worker sends, a step."""
    lane_bytes_per_s: float
    """One packet in flight carries: payload ÷ round trip."""
    line_bytes_per_s: float = math.inf
    """A worker's link carries."""
    beside_bytes_per_s: float = 0.0
    """Carried without a slot, by an aggregator; 0: the job has none, as in mode ``pool``."""

    def with_line(self, bytes_per_s: float) -> StepModel:
        """The same over links of this rate; 0: it is not known."""
        return replace(self, line_bytes_per_s=bytes_per_s) if bytes_per_s else self

    def step_s(self, slots: int) -> float:
        """With so many slots, both versions; infinite: it stands still."""
        rate = self.beside_bytes_per_s + slots // 2 * self.lane_bytes_per_s
        if rate <= 0:
            return math.inf
        sums_s = self.bytes / min(self.line_bytes_per_s, rate)
        return self.compute_s + max(0.0, sums_s - self.overlap_s)


@dataclass(frozen=True)
class Demand:
    """One job that has slots, or wants some, on a switch."""

    name: str
    steps: StepModel
    steps_left: float
    """To its end, as it said or as is supposed."""
    slots: int = 0
    """That it has; 0: it has not begun."""
    floor: int = MIN_JOB_SLOTS
    """The fewest that it may have, a power of two, and no more than it asked for: what runs is
    never stopped."""
    asked: int = 0
    """Slots that it asked for, of which it gets no more; 0: it did not."""
    priority: int = 0
    """Higher is more important."""
    deadline_s: float | None = None
    """Seconds from now until it is to have ended; None: it has said none."""
    changes: float = 0.0
    """That it has used up: see :mod:`ina.controller.memory.resizes`."""
    since_s: float = 0.0
    """When it came, on any clock: who came first goes first where all else is equal."""

    def left_s(self, slots: int) -> float:
        """Time to its end if it has so many slots until then."""
        return self.steps_left * self.steps.step_s(slots)

    def value(self, slots: int) -> float:
        """Rate ÷ remaining: the share of what it has to go that it does in a second."""
        left_s = self.left_s(slots)
        return 1.0 / left_s if left_s > 0 else math.inf

    @functools.cached_property
    def useful(self) -> int:
        """The fewest slots with which steps take as long as with any number, or all that it asked
        for: a power of two, and no fewer than its floor."""
        slots = max(self.floor, usable(self.asked or MAX_JOB_SLOTS))
        least_s = self.steps.step_s(slots)
        while slots // 2 >= self.floor and self.steps.step_s(slots // 2) <= AS_LONG * least_s:
            slots //= 2
        return slots


def usable(slots: int) -> int:
    """What of so many slots a job can use: lanes are a power of two; 0 where there is not one."""
    return 0 if slots < MIN_JOB_SLOTS else 1 << (slots.bit_length() - 1)
