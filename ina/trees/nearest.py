"""Placement ``nearest``: each worker's part is added up as near to it as can be. Pure.

Parts go up from the tops of racks to the switch that all of them are nearest to, and are added up
where two or more of them meet on their ways. Where only one passes, it is forwarded as any packet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import pairwise
from typing import Protocol

from ina.fabric.graph import Fabric, Place
from ina.fabric.outages import Down
from ina.fabric.ports import PortNumber, plain_number
from ina.protocol.addresses import is_shm_address
from ina.protocol.peer import Peer
from ina.protocol.spec import MAX_WORLD_SIZE
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest, forest_of
from ina.trees.tree import Node, Tree


class Located(Protocol):
    """What must be known of a worker."""

    @property
    def peer(self) -> Peer:
        """Where its packets come from."""

    @property
    def switch(self) -> str:
        """Where it was told to send, by name; empty: it did not say."""


class Nearest:
    """Places jobs over a fabric."""

    is_known_early = False

    def __init__(
        self,
        fabric: Fabric,
        number: PortNumber | None = None,
        *,
        keep_tops: bool = True,
        is_reached: Callable[[str], bool] | None = None,
    ) -> None:
        """``number`` may raise; without it every port is a number already. ``keep_tops``: see
        :func:`tree_over`; workers are told where to send before the tree is known.
        ``is_reached``: whether a switch can be written now; without, all can.
        """
        self._is_reached = is_reached or (lambda switch: True)
        self._around: tuple[frozenset[str], Fabric] | None = None
        self.fabric = fabric
        self._number = number or plain_number
        self._keep_tops = keep_tops

    def switch_of(self, addresses: Sequence[IPv4Address]) -> str:
        """The top of rack of the host that has these addresses, among others perhaps.

        Raises :class:`JobRequestError`: no ``[[host]]`` has one of them; several do, and are
        behind different switches.
        """
        known = {address: place for address in addresses if (place := self._place(address))}
        if not known:
            raise JobRequestError(
                f"a host at {_listed(addresses)} is behind no switch: the controller's [[host]]"
                " tables list none of its addresses"
            )
        first, *others = known.items()
        for address, place in others:
            if place.switch != first[1].switch:
                raise JobRequestError(
                    f"a host is behind two switches, at {first[0]} behind {first[1].switch!r} and"
                    f" at {address} behind {place.switch!r}: list one of both in [[host]]"
                )
        return first[1].switch

    def port_to(self, switch: str, address: IPv4Address) -> int:
        """The port of ``switch``, which need not be its top of rack, behind which a host is.

        There its packets arrive, and results leave. Raises :class:`JobRequestError`.
        """
        place = self._place(address)
        if place is None:
            raise JobRequestError(f"{address} is behind no switch: no [[host]] lists it")
        if not self.fabric.path(switch, place.switch):
            raise JobRequestError(
                f"no path of links leads from switch {switch!r} to {address}, which is behind"
                f" {place.switch!r}"
            )
        port = place.port
        if place.switch != switch:
            port = self.fabric.port_towards(switch, place.switch)
        return self._number(switch, port)

    def forest(self, job: str, endpoints: Mapping[int, Located]) -> Forest:
        """Where the parts of all ranks are added up: one tree, around switches that cannot be
        reached.

        Where there is no way around, over them. Raises :class:`JobRequestError`: a rank's host is
        unknown, no path joins two ranks' racks, a switch would have more than 32 children or be
        deeper than 4 levels.
        """
        if len(endpoints) > MAX_WORLD_SIZE:
            raise JobRequestError(
                f"job {job!r}: {len(endpoints)} workers: at most {MAX_WORLD_SIZE} sum together"
            )
        racks: dict[str, list[int]] = {}
        for rank in sorted(endpoints):
            racks.setdefault(self.rack(job, rank, endpoints[rank]), []).append(rank)
        try:
            return forest_of(self._tree_around(racks))
        except JobRequestError as error:
            raise JobRequestError(f"job {job!r}: {error}") from None

    def _tree_around(self, racks: Mapping[str, Sequence[int]]) -> Tree:
        names = self.fabric.switches
        away = frozenset(it for it in names if it not in racks and not self._is_reached(it))
        if away:
            if self._around is None or self._around[0] != away:  # finding all paths takes a while
                self._around = away, self.fabric.around(Down(away))
            try:
                fabric = self._around[1]
                return tree_over(fabric, racks, self._number, keep_tops=self._keep_tops)
            except JobRequestError:
                pass  # there is no way around
        return tree_over(self.fabric, racks, self._number, keep_tops=self._keep_tops)

    def rack(self, job: str, rank: int, at: Located) -> str:
        """A worker's top of rack. Raises :class:`JobRequestError`: its host is unknown."""
        place = self._place(at.peer.address)
        if place is not None:
            return place.switch
        # Who shares memory with a switch has an address that the switch has made up.
        if is_shm_address(at.peer.address) and at.switch in self.fabric:
            return at.switch
        raise JobRequestError(
            f"job {job!r}: rank {rank} sends from {at.peer.address}, which is behind no switch: no"
            " [[host]] lists it"
        )

    def _place(self, address: IPv4Address) -> Place | None:
        """Behind the only switch there is, are all whom nobody lists."""
        place = self.fabric.hosts.get(address)
        if place is None and len(self.fabric.switches) == 1:
            (switch,) = self.fabric.switches
            return Place(switch, self.fabric.data_ports[switch])
        return place


def tree_over(
    fabric: Fabric,
    racks: Mapping[str, Sequence[int]],
    number: PortNumber | None = None,
    *,
    keep_tops: bool = False,
) -> Tree:
    """The tree for workers at these switches, each with its ranks, of which there is one or more.

    ``keep_tops``: a worker sends to its top of rack also where it is alone there and nothing is
    added up; else to the first switch on its way where others' parts arrive, too.

    Raises :class:`JobRequestError`: as :meth:`Nearest.forest`.
    """
    racks = {switch: sorted(racks[switch]) for switch in sorted(racks, key=fabric.order)}
    if len(racks) == 1:
        ((switch, ranks),) = racks.items()
        return Tree((Node(switch, tuple(ranks)),))
    root = _root(fabric, racks)
    below: dict[str, set[str]] = {}
    for switch in racks:
        up = fabric.path(switch, root)
        for child, parent in pairwise(up):
            below.setdefault(parent, set()).add(child)
    return Tree(
        tuple(_Builder(fabric, racks, below, number or plain_number, keep_tops).nodes(root))
    )


def _root(fabric: Fabric, racks: Mapping[str, Sequence[int]]) -> str:
    """The lowest common ancestor: fewest links to all racks together, then to the farthest."""
    best: tuple[int, int, int] | None = None
    for order, switch in enumerate(fabric.switches):
        away = [hops for rack in racks if (hops := fabric.hops(switch, rack)) is not None]
        if len(away) == len(racks) and (best is None or (sum(away), max(away), order) < best):
            best = (sum(away), max(away), order)
    if best is None:
        first, *others = racks
        lost = next(other for other in others if not fabric.path(first, other))
        raise JobRequestError(
            f"rank {racks[first][0]} is behind switch {first!r} and rank {racks[lost][0]} behind"
            f" {lost!r}: no path of links joins them"
        )
    return fabric.switches[best[2]]


@dataclass(frozen=True)
class _Subtree:
    """What comes out of a switch: its own sum, or the only part that came in."""

    ranks: tuple[int, ...]
    """A worker's part, passed on; empty: it is a node's."""
    nodes: tuple[Node, ...]
    """The node and those below it, each before its children; its parent is not known yet."""


class _Builder:
    """Nodes for the switches on the ways from racks to a root."""

    def __init__(
        self,
        fabric: Fabric,
        racks: Mapping[str, Sequence[int]],
        below: Mapping[str, Iterable[str]],
        number: PortNumber,
        keep_tops: bool,
    ) -> None:
        """``below``: by switch, those one link nearer to the racks."""
        self._keep_tops = keep_tops
        self._fabric = fabric
        self._racks = racks
        self._below = below
        self._number = number

    def nodes(self, root: str) -> tuple[Node, ...]:
        """All nodes, the root first."""
        return self._subtree(root).nodes

    def _subtree(self, switch: str) -> _Subtree:
        children = [
            self._subtree(child)
            for child in sorted(self._below.get(switch, ()), key=self._fabric.order)
        ]
        own = self._racks.get(switch, ())
        ranks = sorted([*own, *(rank for child in children for rank in child.ranks)])
        tops = [child.nodes[0] for child in children if child.nodes]
        # Where there is nothing to add up, the part goes on as it came.
        if len(ranks) + len(tops) == 1 and not (self._keep_tops and own):
            return _Subtree(tuple(ranks), tuple(node for it in children for node in it.nodes))
        node = Node(
            switch,
            tuple(ranks),
            tuple(top.switch for top in tops),
            tuple(self._port(switch, top.switch) for top in tops),
        )
        attached = [self._attach(below, node) for child in children for below in child.nodes]
        return _Subtree((), (node, *attached))

    def _attach(self, node: Node, parent: Node) -> Node:
        if node.switch not in parent.nodes:
            return node
        port = self._port(node.switch, parent.switch)
        return Node(node.switch, node.ranks, node.nodes, node.ports, parent.switch, port)

    def _port(self, switch: str, other: str) -> int:
        return self._number(switch, self._fabric.port_towards(switch, other))


def _listed(addresses: Sequence[IPv4Address]) -> str:
    return ", ".join(map(str, addresses)) or "no address"
