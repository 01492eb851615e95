"""What a job uses of links and slots, for each bit/s of a rank's packets. Pure.

A rank sends and gets as many packets as any other, and so does each node of the tree towards its
parent: their sums are as many as what they are sums of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import pairwise

from ina.fabric.graph import Fabric
from ina.p4.builds import frame_bytes
from ina.switch.queues import WIRE_GAP_BYTES
from ina.trees.endpoint import Endpoint
from ina.trees.mapping import Mapping as JobMapping
from ina.trees.tree import Node, Tree

Hop = tuple[str, str]
"""One direction of a link: from, to; a host's address or a switch's name."""


@dataclass(frozen=True)
class UsedLink:
    """One direction of a link, as something that jobs share."""

    begin: str
    end: str

    def __str__(self) -> str:
        return f"{self.begin} > {self.end}"


@dataclass(frozen=True)
class SharedPool:
    """The slots of a switch that jobs of mode ``shared`` claim."""

    switch: str

    def __str__(self) -> str:
        return f"the shared slots of {self.switch}"


@dataclass(frozen=True)
class OwnSlots:
    """A job's own: it has a packet in flight for two of them at most."""

    job: str

    def __str__(self) -> str:
        return f"the slots of {self.job}"


Thing = UsedLink | SharedPool | OwnSlots


def packet_bits(values: int) -> int:
    """Of a packet with so many values, as it takes a cable's time."""
    return 8 * (WIRE_GAP_BYTES + frame_bytes(values))


def link_rates(fabric: Fabric) -> dict[Thing, float]:
    """Of each direction of the links that a rate is known of, bit/s."""
    found: dict[Thing, float] = {}
    for address, place in fabric.hosts.items():
        if place.rate_bits_per_s:
            for begin, end in ((str(address), place.switch), (place.switch, str(address))):
                found[UsedLink(begin, end)] = place.rate_bits_per_s
    for link in fabric.links:
        one, other = link.switches
        is_used = fabric.link(one, other) is link  # a second cable is no other way
        if link.rate_bits_per_s and is_used:
            for begin, end in ((one, other), (other, one)):
                found[UsedLink(begin, end)] = link.rate_bits_per_s
    return found


def link_uses(
    fabric: Fabric, mapping: JobMapping, members: Mapping[int, Endpoint]
) -> dict[Thing, float]:
    """How often its packets pass each direction of a link; where some lanes do, a part."""
    forest = mapping.forest
    found: Counter[Thing] = Counter()
    for tree, share in zip(forest, forest.shares, strict=True):
        for begin, end in _hops(fabric, tree, members, alone=len(forest) > 1):
            found[UsedLink(begin, end)] += share / forest.parts  # type: ignore[assignment]
    return dict(found)


def slot_uses(mapping: JobMapping, name: str, bits: int, round_trip_s: float) -> dict[Thing, float]:
    """Packets in flight, each of which has a slot at each node of its tree whose slots are shared.

    ``bits``: of a packet; ``round_trip_s``: more than 0.
    """
    in_flight = round_trip_s / bits
    found: dict[Thing, float] = {OwnSlots(name): in_flight}
    forest = mapping.forest
    for name in forest.switches:
        if forest.shares_slots_of(name):
            found[SharedPool(name)] = in_flight * forest.parts_at(name) / forest.parts
    return found


def _hops(
    fabric: Fabric, tree: Tree, members: Mapping[int, Endpoint], *, alone: bool
) -> Iterator[Hop]:
    """Each direction of a link, as often as packets pass it. ``alone``: each gets its results."""
    for node in tree:
        groups: set[tuple[IPv4Address, str]] = set()
        for rank in node.ranks:
            at = members.get(rank)
            if at is None or node.host is not None:
                continue  # it has left, or what it sends stays on its host
            yield from _way(fabric, at.peer.address, node.switch)
            is_alone = alone or bool(node.rank_ports)
            if at.results_group is not None and not is_alone:  # behind one port: once together
                group = (at.results_group, f"{node.switch}:{at.switch_port}")
                if group in groups:
                    continue
                groups.add(group)
            yield from _back(_way(fabric, at.peer.address, node.switch))
        if node.parent is not None:
            way = list(_between(fabric, node, tree[node.parent]))
            yield from way
            yield from _back(way)


def _between(fabric: Fabric, node: Node, parent: Node) -> Iterator[Hop]:
    if node.host is not None:
        yield from _way(fabric, node.host.peer.address, parent.switch)
    elif parent.host is not None:
        yield from _back(_way(fabric, parent.host.peer.address, node.switch))
    else:
        yield from _along(fabric, node.switch, parent.switch)


def _way(fabric: Fabric, address: IPv4Address, switch: str) -> Iterator[Hop]:
    """From a host to a switch; nothing of what is not known."""
    place = fabric.hosts.get(address)
    if place is None:
        return
    yield str(address), place.switch
    yield from _along(fabric, place.switch, switch)


def _along(fabric: Fabric, begin: str, end: str) -> Iterator[Hop]:
    if begin in fabric and end in fabric:
        path = fabric.path(begin, end)
        yield from pairwise(path)


def _back(way: Iterator[Hop] | list[Hop]) -> Iterator[Hop]:
    return ((end, begin) for begin, end in way)
