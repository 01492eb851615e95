"""An exhaustive search over everything a network can do to a job of mode `stream`.

A tensor's blocks are dealt to lanes. Everybody answers each round of a lane: with the lane's block,
or, where that is zero, without values; and says which of its blocks of this lane is not zero next.
The result brings the least that was said, and there all go. So a lane's blocks are, in a system
that keeps its promises, the first one and those that somebody has: round k's is ``path[k]``. A
result that is not the sum of that block, with the next of the path as its minimum, breaks them.

Rounds are chunks of mode `pool`'s search (``tree_check``), whose network, switches, restarts and
strangers these are, on one switch or a tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from ina.protocol import serial
from ina.protocol.codec import Header
from ina.protocol.slot_model import CHECK_MODULUS, DIGEST_MODULUS, STICKY_FLAGS
from ina.protocol.spec import NO_FLAGS, ValueType
from ina.protocol.stream import NO_BLOCK
from ina.protocol.switch_model import EPOCH_BITS, ModelJob, SwitchModel
from tests.protocol.stream_faults import AddsTheSilent
from tests.protocol.tree_check import Tree, TreeMoves, TreeSystem
from tests.protocol.tree_fabric import FIRST_SLOT
from tests.protocol.tree_traffic import STRANGER, WORKER_SHIFT, Packet, Traffic

Holds = tuple[frozenset[int], ...]
"""By worker, its blocks that are not zero."""


@dataclass(frozen=True)
class Blocks:
    """Of one tensor, and how they are dealt: block b is on lane b mod ``lanes``."""

    holds: Holds
    lanes: int = 1

    def next(self, worker: int, block: int) -> int:
        """The worker's first of the lane that comes behind it and is not zero."""
        later = (it for it in self.holds[worker] if it > block and self._is_beside(it, block))
        return min(later, default=NO_BLOCK)

    def _is_beside(self, one: int, other: int) -> bool:
        return (one - other) % self.lanes == 0

    @cached_property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """By lane, the blocks that are to be sent, each in its round."""
        someones = frozenset().union(*self.holds)
        return tuple(
            tuple(sorted({lane} | {it for it in someones if self._is_beside(it, lane)}))
            for lane in range(self.lanes)
        )

    @property
    def rounds(self) -> int:
        """Of all lanes, which must have as many each: the search has no rounds without a block."""
        (rounds,) = set(map(len, self.paths))
        return rounds * self.lanes

    def at(self, chunk: int) -> int:
        """The block of a round; rounds are numbered as chunks are."""
        return self.paths[chunk % self.lanes][chunk // self.lanes]


@dataclass(frozen=True)
class Stream(Tree):
    """A tree's job, by its blocks: ``chunks`` and ``window`` follow from them. ``is_answered``: a
    worker answers where its block is zero; to seed a bug."""

    blocks: Blocks = Blocks(())
    is_answered: bool = True


@dataclass
class StreamTraffic(Traffic):
    """What the workers of such a job send."""

    blocks: Blocks = Blocks(())
    is_answered: bool = True

    @property
    def value_count(self) -> int:
        """One for each epoch and block of which there are sums, and `next`."""
        return 2 * self.chunks + 1

    def part(self, epoch: int, worker: int, chunk: int) -> tuple[Header, tuple[int, ...]]:
        block = self.blocks.at(chunk)
        place = epoch * self.chunks + chunk
        values: tuple[int, ...] = (_signed(self.blocks.next(worker, block)),)
        if block in self.blocks.holds[worker]:
            sums = [0] * (self.value_count - 1)
            sums[place] = 1 << WORKER_SHIFT * worker
            values = (*sums, *values)
        said, _ = super().part(epoch, worker, chunk)
        return replace(said, value_type=ValueType.INT32, value_count=len(values)), values

    def sum_of(
        self, epoch: int, chunk: int, ranks: Iterable[int]
    ) -> tuple[Header, tuple[int, ...]]:
        block, place = self.blocks.at(chunk), epoch * self.chunks + chunk
        parts = [self.part(epoch, worker, chunk)[0] for worker in ranks]
        flags = NO_FLAGS
        for header in parts:
            flags |= header.flags & STICKY_FLAGS
        said = replace(
            parts[0],
            value_count=self.value_count,
            flags=flags,
            next_exponent=max(header.next_exponent for header in parts),
            digest=sum(header.digest for header in parts) % DIGEST_MODULUS,
            check=sum(header.check for header in parts) % CHECK_MODULUS,
        )
        sums = [0] * (self.value_count - 1)
        sums[place] = sum(1 << WORKER_SHIFT * it for it in ranks if block in self.blocks.holds[it])
        least = min(self.blocks.next(it, block) for it in ranks)
        return said, (*sums, _signed(least))

    def send(self, epoch: int, worker: int, chunk: int) -> Iterator[Packet]:
        for packet in super().send(epoch, worker, chunk):
            if self.is_answered or self.answers(worker, chunk):
                yield packet
            else:  # from nobody's port: it comes to nothing
                yield replace(packet, sender=replace(packet.sender, port=STRANGER))

    def answers(self, worker: int, chunk: int) -> bool:
        """Whether a worker has anything to say in a round, if zero blocks are not answered."""
        return chunk < self.blocks.lanes or self.blocks.at(chunk) in self.blocks.holds[worker]

    def silent_beside(self, header: Header) -> list[Packet]:
        """What those would say who say nothing in the round that a packet is of."""
        epoch = (header.epoch - self.first_epoch) % (1 << EPOCH_BITS)
        chunk = serial.add(header.seq, -self.first_seq)
        ranks = [it for it in self.fabric.ranks if not self.answers(it, chunk)]
        return [next(super(StreamTraffic, self).send(epoch, it, chunk)) for it in ranks]


class StreamMoves(TreeMoves):
    """Of the switches of such a job."""

    tree: Stream
    traffic: StreamTraffic

    def make_traffic(self, first_seq: int) -> Traffic:
        tree = self.tree
        return StreamTraffic(
            *(self.fabric, tree.chunks, self.slots, first_seq),
            blocks=tree.blocks,
            is_answered=tree.is_answered,
        )

    def make_switch(self, job: ModelJob) -> SwitchModel:
        slots, values = FIRST_SLOT + self.slots, self.traffic.value_count
        switch = self.tree.switch_type(slots, values, expands=True)
        if isinstance(switch, AddsTheSilent):
            switch.silent = self.traffic.silent_beside
        switch.install(replace(job, is_stream=True))
        return switch


class StreamSystem(TreeSystem):
    """The job, its switches and the network."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream, StreamMoves(stream))


def _signed(word: int) -> int:
    """As int32."""
    return (word + 2**31) % 2**32 - 2**31
