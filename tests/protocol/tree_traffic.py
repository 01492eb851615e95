"""What workers of a job over a tree send, what strangers do in their names, and the results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from ina.protocol import serial
from ina.protocol.codec import Header
from ina.protocol.slot_model import CHECK_MODULUS, DIGEST_MODULUS, STICKY_FLAGS
from ina.protocol.spec import NO_FLAGS, Flag, Kind, ValueType, path_of
from ina.protocol.switch_model import EPOCH_BITS, Attachment
from tests.protocol.tree_fabric import WORKER, Fabric

FIRST_EPOCH = 2**16 - 1
"""The header's 16 bits of it wrap around with the restart."""

STRANGER = 99
"""A place, of nobody in the job."""

WORKER_SHIFT = 8  # each worker counts in a byte of its own


@dataclass(frozen=True)
class Packet:
    """On its way to a switch. Of it, ``asker`` and ``asked_by`` do not travel."""

    at: int
    sender: Attachment
    header: Header
    values: tuple[int, ...]
    asker: int  # the worker whose packet has brought it about
    asked_by: int  # the path that this worker wrote

    def __str__(self) -> str:
        header = self.header
        return (
            f"{header.kind.name} of epoch {header.epoch} seq {header.seq} worker {header.worker}"
            f" path {header.path:06x} {header.flags!r} to switch {self.at} (by {self.asker})"
        )


@dataclass
class Traffic:
    """Of a job's first epoch, 0 here, and of the next, 1. The last fields: of one among others."""

    fabric: Fabric
    chunks: int
    slots: int
    first_seq: int
    number: int = 1
    first_epoch: int = FIRST_EPOCH
    first_value: int = 0  # that is this job's; each value is of one job, epoch and chunk
    values: int = 0  # of a packet; 0: those of this job
    silent: frozenset[int] = frozenset()  # chunks whose packets have no values

    @property
    def value_count(self) -> int:
        return self.values or 2 * self.chunks

    def part(self, epoch: int, worker: int, chunk: int) -> tuple[Header, tuple[int, ...]]:
        """A worker's contribution: its values, digest, check and exponent are no other's."""
        place = self.first_value + epoch * self.chunks + chunk
        values = [0] * (0 if chunk in self.silent else self.value_count)
        if values:
            values[place] = 1 << WORKER_SHIFT * worker
        one = 1 + place * len(self.fabric.ranks) + worker
        flags = Flag.RESEND | (Flag.ECN, Flag.OVERFLOW, Flag.NON_FINITE)[one % 3]
        header = Header(
            flags=flags | Flag.PARTIAL,  # neither RESEND nor PARTIAL may come out
            job=self.number,
            epoch=(self.first_epoch + epoch) % (1 << EPOCH_BITS),
            worker=self.fabric.child(WORKER + worker),
            slot=chunk % self.slots,
            seq=serial.add(self.first_seq, chunk),
            value_type=self.number % len(ValueType),
            value_count=len(values),
            exponent=self.number,
            next_exponent=1
            + place * len(self.fabric.ranks)
            + (worker + place) % len(self.fabric.ranks),
            digest=pow(5, one, 2**31 - 1) % DIGEST_MODULUS,
            check=pow(7, one, 2**31 - 1),
            path=self.fabric.tree.path(worker),
        )
        return header, tuple(values)

    def whole(self, epoch: int, chunk: int) -> tuple[Header, tuple[int, ...]]:
        """What the result of a round says of it."""
        said, values = self.sum_of(epoch, chunk, self.fabric.ranks)
        return replace(said, kind=Kind.RESULT, contributors=self.fabric.full_bitmap), values

    def sum_of(
        self, epoch: int, chunk: int, ranks: Iterable[int]
    ) -> tuple[Header, tuple[int, ...]]:
        """What the sum of some workers' parts of a round says of them."""
        parts = [self.part(epoch, worker, chunk) for worker in ranks]
        flags = NO_FLAGS
        for header, _ in parts:
            flags |= header.flags & STICKY_FLAGS
        said = replace(
            parts[0][0],
            flags=flags,
            next_exponent=max(header.next_exponent for header, _ in parts),
            digest=sum(header.digest for header, _ in parts) % DIGEST_MODULUS,
            check=sum(header.check for header, _ in parts) % CHECK_MODULUS,
        )
        return said, tuple(map(sum, zip(*(values for _, values in parts), strict=True)))

    def send(self, epoch: int, worker: int, chunk: int) -> Iterator[Packet]:
        """A worker's packet of a chunk; then worker 0's with paths that lead astray."""
        header, values = self.part(epoch, worker, chunk)
        place, first = WORKER + worker, self.fabric.workers[worker]
        taken = self.fabric.carry(place, self.fabric.address(first, self.fabric.up[place]))
        assert taken is not None
        yield Packet(*taken, header, values, worker, header.path)
        if worker == 0:
            for path in self.astray:
                asks = replace(header, flags=header.flags | Flag.REPLAY, path=path)
                yield Packet(*taken, asks, values, worker, path)

    @cached_property
    def astray(self) -> tuple[int, ...]:
        """Paths like worker 0's, but that at one level below the root lead to nobody: where a
        node's children leave an index to spare; else at the root, where they always do."""
        tree = self.fabric.tree
        first = tree.first_node(0)
        way, widths = (*tree.way(first), first.index_of_rank(0)), tree.widths(first)
        nodes = [first]
        while nodes[0].parent is not None:
            nodes.insert(0, tree[nodes[0].parent])
        spare = [
            (level, (1 << width) - 1)
            for level, (node, width) in enumerate(zip(nodes, widths, strict=True))
            if len(way) > 1 and (1 << width) > node.fan_in
        ]
        return tuple(
            path_of((*way[:level], index, *way[level + 1 :]), widths)
            for level, index in spare[1:] or spare
        )

    def strangers(self, epochs: int) -> Iterator[Packet]:
        """What others send in the job's name; all of it must be dropped."""
        for at in self.fabric.switches:
            node = self.fabric.tree[str(at)]
            places = [*(WORKER + rank for rank in node.ranks), *node.ports]
            child = self.fabric.job(at, 1, 1).workers[0]
            above = self.fabric.parents[at]
            parent = self.fabric.address(0 if above is None else above, STRANGER)
            own = 0 if above is None else self.fabric.child(at)
            for epoch in range(epochs):
                for chunk in range(self.chunks):
                    header, _ = self.part(epoch, 0, chunk)
                    values = (-1,) * header.value_count
                    asks = replace(header, worker=self.fabric.child(places[0]), digest=1, check=1)
                    told = replace(asks, kind=Kind.RESULT, worker=own)
                    for sender, forged in (
                        (replace(child, port=STRANGER), asks),
                        (self.fabric.address(STRANGER, child.port), asks),
                        (child, told),  # a child's result
                        (parent, told),  # the parent's, by another port
                        (self.fabric.address(STRANGER, above or 0), told),
                    ):
                        yield Packet(at, sender, forged, values, STRANGER, header.path)
