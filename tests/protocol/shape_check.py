"""An exhaustive search over everything a network can do to rounds of shapes other than SUM.

Everybody sends a packet in each round and gets one; a packet has values if its worker has some to
give, a result for those who want them. Which copies lose theirs on the way, hop by hop, the rows
say that the controller writes (``ina.modes.strips``). A result that lacks what its worker wants, or
has what it does not, breaks the promises, as one that is not the sum does.

Rounds are chunks of mode `pool`'s search (``tree_check``), whose network, switches, restarts and
strangers these are, on one switch or a tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from ina.modes.strips import strips
from ina.protocol.codec import Header
from ina.protocol.slot_model import CHECK_MODULUS, DIGEST_MODULUS, STICKY_FLAGS
from ina.protocol.spec import NO_FLAGS, OWNER_BITS, PARENT, Shape
from ina.protocol.switch_model import ModelJob
from tests.protocol.moves import Arrival
from tests.protocol.search import Violation
from tests.protocol.tree_check import Tree, TreeMoves, TreeSystem
from tests.protocol.tree_fabric import Fabric
from tests.protocol.tree_traffic import Packet, Traffic

Rounds = tuple[tuple[Shape, int], ...]
"""By chunk: its shape, and the worker that owns it."""
_OWNERS_PART = (1 << OWNER_BITS) - 1


@dataclass(frozen=True)
class Shaped(Tree):
    """A tree's job, by its rounds: ``chunks`` follows from them. ``owner_gives``: in a SCATTER,
    too; to seed a bug."""

    rounds: Rounds = ()
    owner_gives: bool = False


class ShapedFabric(Fabric):
    """Whose switches have the rows that the controller writes."""

    def job(self, switch: int, epoch: int, slots: int) -> ModelJob:
        job, node = super().job(switch, epoch, slots), self.tree[str(switch)]
        down = tuple(strips(self.tree, node, child) for child in range(node.fan_in))
        if job.parent is None:
            return replace(job, strips=down)
        up = strips(self.tree, node, PARENT)
        return replace(job, strips=down, parent=replace(job.parent, strips=up))


@dataclass
class ShapedTraffic(Traffic):
    """What the workers of such a job send."""

    rounds: Rounds = ()
    owner_gives: bool = False

    def owner_part(self, chunk: int) -> int:
        """The lower bits of a round's paths."""
        shape, owner = self.rounds[chunk]
        return 0 if shape == Shape.SUM else self.fabric.tree.owners[owner]

    def gives(self, worker: int, chunk: int) -> bool:
        """Whether the worker's packet has values."""
        shape, owner = self.rounds[chunk]
        return shape == Shape.SUM or (shape == Shape.GATHER) == (worker == owner)

    def gets(self, worker: int, chunk: int) -> bool:
        """Whether its result has them."""
        shape, owner = self.rounds[chunk]
        return shape == Shape.SUM or (shape == Shape.SCATTER) == (worker == owner)

    def part(self, epoch: int, worker: int, chunk: int) -> tuple[Header, tuple[int, ...]]:
        header, values = super().part(epoch, worker, chunk)
        if not (self.gives(worker, chunk) or self.owner_gives):
            values = ()
        path = header.path | self.owner_part(chunk)
        shape = self.rounds[chunk][0]
        return replace(header, shape=shape, path=path, value_count=len(values)), values

    def sum_of(
        self, epoch: int, chunk: int, ranks: Iterable[int]
    ) -> tuple[Header, tuple[int, ...]]:
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
        given = [
            super(ShapedTraffic, self).part(epoch, worker, chunk)[1]
            for worker in ranks
            if self.gives(worker, chunk)
        ]
        zeros = (0,) * self.value_count
        return said, tuple(map(sum, zip(zeros, *given, strict=True)))

    def send(self, epoch: int, worker: int, chunk: int) -> Iterator[Packet]:
        """Astray are the ways to the worker, never those to the owner."""
        first, *astray = super().send(epoch, worker, chunk)
        yield first
        for packet in astray:
            if packet.header.path & _OWNERS_PART == self.owner_part(chunk):
                yield packet

    @cached_property
    def astray(self) -> tuple[int, ...]:
        owners = {self.owner_part(chunk) for chunk in range(self.chunks)}
        return tuple(path | owner for path in super().astray for owner in sorted(owners))


class ShapedMoves(TreeMoves):
    """Of the switches of such a job."""

    tree: Shaped
    traffic: ShapedTraffic

    def make_traffic(self, first_seq: int) -> Traffic:
        tree = self.tree
        return ShapedTraffic(
            *(self.fabric, tree.chunks, self.slots, first_seq),
            rounds=tree.rounds,
            owner_gives=tree.owner_gives,
        )

    def check_result(
        self,
        said_by: tuple[Traffic, int],
        at: Arrival,
        packet: Packet,
        got: Header,
        values: tuple[int, ...],
    ) -> None:
        traffic, _ = said_by
        assert isinstance(traffic, ShapedTraffic)
        if traffic.gets(at.worker, at.chunk):
            super().check_result(said_by, at, packet, got, values)
        elif values:
            raise Violation(f"worker {at.worker} gets values of chunk {at.chunk}: {values}")
        else:
            _, whole = traffic.whole(said_by[1], at.chunk)
            full = replace(got, value_count=traffic.value_count)
            super().check_result(said_by, at, packet, full, whole)


class ShapedSystem(TreeSystem):
    """The job, its switches and the network."""

    def __init__(self, shaped: Shaped) -> None:
        super().__init__(shaped, ShapedMoves(shaped))
