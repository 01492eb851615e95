"""Which aggregators can be the root of a tree, and behind which ports they are. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from ina.fabric.graph import Fabric
from ina.fabric.ports import PortNumber, PortRef, plain_number
from ina.trees.tree import Node


@dataclass(frozen=True)
class AggregatorPlace:
    """Where one is."""

    name: str
    switch: str
    """The switch that it is behind, by name."""
    port: PortRef
    """That switch's port."""
    own_port: int
    """Its own port, towards all switches."""


WayIsUp = Callable[[Sequence[str]], bool]
"""Of a way by the switches on it, both ends among them."""


def always_up(_way: Sequence[str]) -> bool:
    """Where nobody says what is down."""
    return True


@dataclass(frozen=True)
class Above:
    """An aggregator as the root above a tree's top switch."""

    node: Node
    port: int
    """The top switch's port towards it."""


class Aggregators:
    """Those that there are, in a given order."""

    def __init__(
        self,
        fabric: Fabric,
        places: Sequence[AggregatorPlace] = (),
        number: PortNumber | None = None,
    ) -> None:
        """``number``: of a switch's port; without it every port is a number already."""
        self._fabric = fabric
        self._places = tuple(places)
        self._number = number or plain_number

    def __len__(self) -> int:
        return len(self._places)

    def above(self, top: str, is_up: WayIsUp = always_up) -> list[Above]:
        """Those that a switch reaches over what is up, the nearest first."""
        near = [
            (len(way) - 1, it)
            for it in self._places
            if (way := self._fabric.path(top, it.switch)) and is_up(way)
        ]
        return [
            Above(
                Node(it.name, (), (top,), (it.own_port,)),
                self._number(top, self._fabric.port_towards(top, it.switch) if hops else it.port),
            )
            for hops, it in sorted(near, key=lambda pair: pair[0])
        ]

    def way_to_host(self, top: str, address: IPv4Address) -> tuple[str, ...]:
        """From a switch to the one that a host is behind; empty: none is known."""
        place = self._fabric.hosts.get(address)
        return () if place is None else self._fabric.path(top, place.switch)
