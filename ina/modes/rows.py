"""The rows of one node's tables: how each neighbour of a job is let in, and reached. Pure.

A neighbour is a worker, a switch below or the switch above; to the node's tables they are alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Address

from ina.modes.strips import strips
from ina.p4 import names
from ina.protocol.addresses import multicast_mac_of
from ina.protocol.peer import Peer
from ina.protocol.spec import ALL_WORKERS, RESULTS_UDP_PORT, Kind
from ina.protocol.strips import KEEPS, Strips
from ina.tables.values import Entry
from ina.trees.mapping import Part
from ina.trees.slots import SlotRange
from ina.trees.tree import Node

EPOCH_BITS = 16
"""Low bits of the epoch that the header carries and the tables match."""


@dataclass(frozen=True)
class Neighbour:
    """Whom a node exchanges a job's packets with."""

    peer: Peer
    port: int
    """The node's port that it is behind."""


@dataclass(frozen=True)
class Place:
    """A node of one of a job's trees, with what is around it: what a mode writes its rows of."""

    part: Part
    node: Node
    children: tuple[Neighbour, ...]
    """By index."""
    parent: Neighbour | None
    """None: it is the root."""
    group: int
    """The multicast group of its results."""
    is_alone: bool
    """Whether the job has no other tree here."""
    priority: int
    """The job's."""
    age_us: int
    """Of slots that the node shares, until they may be another job's."""

    @property
    def bits(self) -> tuple[int, ...]:
        """By index of a child: its bits in bitmaps here."""
        return self.part.tree.child_bits(self.node)

    @property
    def memory(self) -> SlotRange:
        """The job's slots here."""
        memory = self.part.memory_at(self.node)
        assert memory is not None
        return memory

    @property
    def own_index(self) -> int:
        """Of this node among its parent's children."""
        assert self.node.parent is not None
        return self.part.tree[self.node.parent].index_of_node(self.node.switch)

    def above(self, **own: int) -> dict[str, int]:
        """Parameters of an admission that say how sums go up; ``own``: more of this node."""
        tree, node = self.part.tree, self.node
        place = {"parent_port": node.parent_port, "own_worker": self.own_index, **own}
        return {**place, "own_level": tree.level(node), "path_mask": tree.path_mask(node)}


def through(whom: Neighbour, routers: Mapping[int, int]) -> Neighbour:
    """The same, by way of the switch that routes behind that port, if one does."""
    mac = routers.get(whom.port, whom.peer.mac)
    return replace(whom, peer=replace(whom.peer, mac=mac))


def member(at: Place, index: int, action: str, **params: int) -> Entry:
    """Lets the packets of the child with this index reach the job's slots."""
    whom = at.children[index]
    match = sender(at.part, index, whom, Kind.CONTRIBUTION, whom.peer.admits)
    return Entry(names.MEMBERS, match, action, tuple(params.items()))


def admission(at: Place, action: str, **params: int) -> Entry:
    """Lets the job's packets in; ``params``: those that its action has besides."""
    usual = (
        ("epoch", at.part.epoch),
        ("first_slot", at.memory.first),
        ("slots", at.memory.slots),
        ("full_bitmap", sum(at.bits)),
        ("group", at.group),
        ("job_index", at.part.number),
    )
    match = (("job", at.part.number), ("epoch", low_epoch(at.part.epoch)))
    return Entry(names.JOBS, match, action, (*usual, *params.items()))


def parent_member(at: Place, parent: Neighbour) -> Entry:
    """Takes results from the parent."""
    match = sender(at.part, at.own_index, parent, Kind.RESULT, parent.peer.admits)
    return Entry(names.MEMBERS, match, names.ADMIT_PARENT, ())


def receiver(at: Place, index: int, whom: Neighbour) -> Entry:
    """Where a child gets results, or the parent sums, and which of them without values."""
    return _receiver(at.part, index, whom.peer, strips(at.part.tree, at.node, index))


def shared_receiver(part: Part, group: IPv4Address) -> Entry:
    """Where one copy reaches all workers that share it, any of which may want its values."""
    all_of_them = Peer(group, RESULTS_UDP_PORT, multicast_mac_of(group))
    return _receiver(part, ALL_WORKERS, all_of_them, KEEPS)


def _receiver(part: Part, worker: int, to: Peer, stripped: Strips) -> Entry:
    match = (("job", part.number), ("worker", worker))
    way = ("way", stripped.way), ("way_mask", stripped.way_mask)
    params = (*to.reached, *way, ("strips_on", stripped.on), ("strips_off", stripped.off))
    return Entry(names.RECEIVERS, match, names.ADDRESS, params)


def way_down(part: Part, way: int, index: int, child: Neighbour) -> Entry:
    """Where a result goes that is for one worker alone, whose path has ``way`` for this node."""
    return Entry(
        names.CHILDREN,
        (("job", part.number), ("way", way)),
        names.TO_CHILD,
        (("port", child.port), ("worker", index)),
    )


def low_epoch(epoch: int) -> int:
    """What the header carries of it."""
    return epoch & ((1 << EPOCH_BITS) - 1)


def sender(
    part: Part, index: int, whom: Neighbour, kind: Kind, admits: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, int], ...]:
    """The key of a row of members; ``admits``: what of it says which one behind its port it is."""
    return (
        ("ingress_port", whom.port),
        *admits,
        ("job", part.number),
        ("epoch", low_epoch(part.epoch)),
        ("worker", index),
        ("kind", int(kind)),
    )
