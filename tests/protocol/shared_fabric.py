"""A job of mode `shared` on switches that it shares: what each of them is told.

As in ``tree_fabric``, but the root is the job's aggregator, and the switches below it share their
slots, except for those that sum for the ranks of one host, say: they have slots of the job's own.

A *unit* is a worker, or all that is below a switch with slots of the job's own. Each has one bit,
the same wherever slots are shared and at the aggregator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_

from ina.protocol.shared_model import Claims
from ina.protocol.switch_model import ModelJob
from tests.protocol.tree_fabric import WORKER, Fabric

AGE_US, LESS_US, LEAD_US = 1000, 100, 10
"""How long the first job waits for a silent owner, how much less each further one, and how much
longer its own slots seem silent."""


@dataclass(frozen=True)
class Arc:
    """The slots that a mapping of a job may claim at each switch, and its own at the aggregator."""

    first: int  # of the shared ones, at every switch
    window: int  # lanes
    claimable: int  # lanes that may claim one
    slots: int  # at the aggregator: both versions, unless that is what is seeded


class SharedFabric(Fabric):
    """``own``: the switches below the root where the job has slots of its own."""

    def __init__(
        self, parents: tuple[int | None, ...], workers: tuple[int, ...], own: tuple[int, ...] = ()
    ) -> None:
        super().__init__(parents, workers, {})
        self.own = (0, *own)

    def is_shared(self, switch: int) -> bool:
        """Whether the job claims slots there."""
        return switch not in self.own

    def below(self, switch: int) -> tuple[int, ...]:
        """Its children, by index."""
        node = self.tree[str(switch)]
        return (*(WORKER + rank for rank in node.ranks), *node.ports)

    def ranks_below(self, place: int) -> tuple[int, ...]:
        """The workers whose parts come through a place, or the one that is there."""
        if place >= WORKER:
            return (place - WORKER,)
        return tuple(rank for child in self.below(place) for rank in self.ranks_below(child))

    @cached_property
    def units(self) -> tuple[int, ...]:
        """Their places, by bit."""
        return tuple(self._units_below(0))

    def _units_below(self, switch: int) -> Iterator[int]:
        for child in self.below(switch):
            if child < WORKER and self.is_shared(child):
                yield from self._units_below(child)
            else:
                yield child

    def bits(self, place: int) -> int:
        """Of the units that are at a place or come through it."""
        if place in self.units:
            return 1 << self.units.index(place)
        return reduce(or_, map(self.bits, self.below(place)))

    @property
    def full_bitmap(self) -> int:
        return self.bits(0)

    def ranks_of(self, bits: int) -> tuple[int, ...]:
        """The workers of some units."""
        return tuple(
            rank
            for bit, place in enumerate(self.units)
            if bits >> bit & 1
            for rank in self.ranks_below(place)
        )

    def shared_job(self, switch: int, number: int, epoch: int, arc: Arc) -> ModelJob:
        """What the controller installs at a switch for a mapping of the job."""
        plain = replace(self.job(switch, epoch, arc.slots), number=number, first_slot=0)
        if switch in self.units:  # its children are told apart by their indices
            return plain
        children = self.below(switch)
        plain = replace(
            plain,
            bits=tuple(map(self.bits, children)),
            sets=frozenset(
                index
                for index, child in enumerate(children)
                if child < WORKER and self.is_shared(child)
            ),
        )
        if not self.is_shared(switch):
            return plain
        return replace(plain, first_slot=arc.first, claims=self.claims(number, arc))

    @staticmethod
    def claims(number: int, arc: Arc) -> Claims:
        """Jobs are of different importance: each next one waits less."""
        age_us, lead_us = AGE_US - number * LESS_US, number * LEAD_US
        return Claims(arc.window - 1, arc.claimable, age_us, lead_us)
