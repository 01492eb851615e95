"""One round of a slot as a capture shows it: who joined when, what came back, who is missing.

Workers are the switch's children; in a tree of switches some may be switches.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ina.protocol.slot_model import Tag
from ina.protocol.spec import MAX_WORKERS


def workers_in(bitmap: int) -> list[int]:
    """The workers whose bits are set, in order."""
    return [worker for worker in range(MAX_WORKERS) if bitmap >> worker & 1]


@dataclass
class SeenRound:
    """``joined``: each child's first contribution that the capture has, in order; time in ns."""

    tag: Tag
    all_bits: int  # of the workers that make the round complete
    joined: dict[int, int] = field(default_factory=dict)
    bitmap: int = 0  # who is in it, by contributions seen or by a result's word
    complete_ns: int | None = None  # when the last contribution, or the first result, was seen
    results: Counter[int] = field(default_factory=Counter)  # those to one worker, by receiver
    results_to_all: int = 0  # those that several workers share; a capture does not tell which
    sums_up: int = 0  # the switch's own contributions to its parent's sum
    replayed: set[int] = field(default_factory=set)  # who asked when the round was complete
    asked_again: Counter[int] = field(default_factory=Counter)  # contributions after the first

    @property
    def complete(self) -> bool:
        """Whether the capture shows that every worker is in it."""
        return self.complete_ns is not None

    @property
    def missing(self) -> list[int]:
        """The workers that the round still waits for, as far as the capture tells."""
        return workers_in(self.all_bits & ~self.bitmap)

    @property
    def unseen(self) -> list[int]:
        """The workers that are in the sum, while the capture has no contribution of theirs."""
        return [worker for worker in workers_in(self.bitmap) if worker not in self.joined]

    @property
    def without_result(self) -> list[int]:
        """The workers to which the capture shows no result."""
        seen = self.results_seen
        return [worker for worker in workers_in(self.all_bits) if worker not in seen]

    @property
    def results_seen(self) -> dict[int, int]:
        """Results by receiver. One to all counts for each worker without one of its own: who does
        not listen gets its own."""
        to_all = dict.fromkeys(workers_in(self.all_bits), 1) if self.results_to_all else {}
        return to_all | {worker: count for worker, count in self.results.items() if count}

    @property
    def span_ns(self) -> int | None:
        """From the first contribution seen to completion."""
        if self.complete_ns is None or not self.joined:
            return None
        return self.complete_ns - min(self.joined.values())
