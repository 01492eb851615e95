"""Which blocks hold something on any rank: what the ranks agree on by summing packed counters.

A counter has as many bits as a number up to the number of ranks needs, so that none carries into
its neighbour. Where there are very many blocks, groups of them are counted first, and then the
blocks of the groups in which there is something.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ina.host.arrays import Array
from ina.host.sparse import kernels
from ina.host.sparse.kernels import Marks, Numbers, Words
from ina.host.turns import Sum, Then, Turns
from ina.protocol.collective import Collective
from ina.protocol.spec import ValueType

Begin = Callable[[Array, Array, Collective], Sum[object]]
"""Begins a collective of an array, whose result comes into another, or into the same. Both stay
until its end."""
GROUP_BLOCKS = 1024
MOST_BLOCKS = 1 << 24
"""That are counted at once."""


def counter_bits(workers: int) -> int:
    """Of a counter."""
    return workers.bit_length()


@dataclass(frozen=True)
class Agreement:
    """How the ranks of a job agree."""

    turns: Turns
    begin: Begin
    workers: int
    most_blocks: int = MOST_BLOCKS

    def union(self, marks: Marks) -> Sum[Numbers]:
        """The numbers of the blocks that are marked on any rank; the same on all of them.

        What that takes has its place in the order of operations now.
        """
        if marks.size <= self.most_blocks:
            counters = self._counters(marks)
            counted = self.turns.submit(lambda: self._count(counters))
            return Then(counted, lambda _: self._marked(counters, marks.size))
        groups = self.union(kernels.mark_groups(marks, GROUP_BLOCKS))
        inside = Then(groups, lambda which: self._inside(marks, which))
        counted = self.turns.submit(lambda: self._count(inside.wait().counters), after=inside)
        return Then(counted, lambda _: self._numbers(inside.wait()))

    def _counters(self, marks: Marks) -> Words:
        return kernels.pack(marks, counter_bits(self.workers))

    def _count(self, counters: Words) -> Sum[object]:
        return self.begin(counters, counters, Collective(ValueType.INT32, counters.size))

    def _marked(self, counters: Words, blocks: int) -> Numbers:
        return kernels.marked(counters, blocks, counter_bits(self.workers))

    def _inside(self, marks: Marks, groups: Numbers) -> _Inside:
        within = kernels.gather(marks, GROUP_BLOCKS, groups)
        return _Inside(groups, within.size, self._counters(within))

    def _numbers(self, inside: _Inside) -> Numbers:
        """Of the blocks, by what the counters of those inside of groups say."""
        found = self._marked(inside.counters, inside.blocks)
        groups = inside.groups[found // GROUP_BLOCKS]
        return groups * GROUP_BLOCKS + found % GROUP_BLOCKS


@dataclass(frozen=True)
class _Inside:
    """The blocks of groups in which there is something."""

    groups: Numbers
    blocks: int
    counters: Words
