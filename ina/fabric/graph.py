"""How switches and hosts are joined: who is behind which port, and the ways between switches. Pure.

Of several shortest ways between two switches there is always one that is meant: the one whose links
come first in the file, as :func:`_weight` puts it. So the way back is the way there, and every part
of a way is the way between its ends. That is what lets a switch know from where to expect what
another one sends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address

import networkx
import numpy as np
import numpy.typing as npt

from ina.fabric.ports import PortRef


@dataclass(frozen=True)
class Place:
    """Where a host is."""

    switch: str
    """The name of its top of rack."""
    port: PortRef
    """That switch's port."""
    mac: int | None = None
    """48 bits; None: derived from the address."""
    rate_bits_per_s: float = 0.0
    """Of its cable, each way; 0: not known."""


@dataclass(frozen=True)
class Link:
    """A cable between two switches."""

    switches: tuple[str, str]
    ports: tuple[PortRef, PortRef]
    rate_bits_per_s: float = 0.0
    """Each way; 0: not known."""

    def port_of(self, switch: str) -> PortRef:
        """The port at one of its ends."""
        return self.ports[self.switches.index(switch)]


class Fabric:
    """Switches in the order of the configuration, links between them, hosts by address."""

    def __init__(
        self,
        switches: Sequence[str],
        links: Sequence[Link] = (),
        hosts: Mapping[IPv4Address, Place] | None = None,
        data_ports: Mapping[str, PortRef] | None = None,
    ) -> None:
        """``data_ports``: by switch, the port of hosts that nobody lists; without: 1."""
        self.switches = tuple(switches)
        self.links = tuple(links)
        self.hosts = dict(hosts or {})
        self.data_ports = {name: (data_ports or {}).get(name, 1) for name in self.switches}
        self._graph = networkx.Graph()
        self._graph.add_nodes_from(self.switches)
        for number, link in enumerate(self.links):
            if not self._graph.has_edge(*link.switches):  # a second cable is no other way
                weight = _weight(number, len(self.links))
                self._graph.add_edge(*link.switches, weight=weight, link=link)

    def __contains__(self, switch: object) -> bool:
        return switch in self._graph

    def order(self, switch: str) -> int:
        """Its number in the configuration."""
        return self._order[switch]

    def path(self, start: str, end: str) -> tuple[str, ...]:
        """The switches on the way, both ends among them; empty: there is none."""
        return self._paths[start].get(end, ())

    def hops(self, start: str, end: str) -> int | None:
        """Links on the way; None: there is none."""
        return len(self.path(start, end)) - 1 if self.path(start, end) else None

    def port_towards(self, switch: str, other: str) -> PortRef:
        """The port of ``switch`` through which another one is reached.

        Raises :class:`KeyError`: no path of links joins them, or they are the same.
        """
        path = self.path(switch, other)
        if len(path) < 2:
            raise KeyError(other)
        return self.link(switch, path[1]).port_of(switch)

    def without(self, switches: Collection[str]) -> Fabric:
        """The same less these switches and their links."""
        return Fabric(
            [it for it in self.switches if it not in switches],
            [it for it in self.links if not set(it.switches).intersection(switches)],
            {at: place for at, place in self.hosts.items() if place.switch not in switches},
            self.data_ports,
        )

    def link(self, one: str, other: str) -> Link:
        """The one that ways between two switches take, which it joins."""
        found: Link = self._graph.edges[one, other]["link"]
        return found

    def port_to_host(self, switch: str, address: IPv4Address) -> PortRef:
        """The port of any switch behind which a host is.

        Raises :class:`KeyError`: the host is unknown, or no path leads there.
        """
        place = self.hosts[address]
        return place.port if place.switch == switch else self.port_towards(switch, place.switch)

    @cached_property
    def next_hops(self) -> npt.NDArray[np.int64]:
        """(switches, switches), by number: the next one on the way to the first from the second.

        -1: there is none.
        """
        found = np.full((len(self.switches), len(self.switches)), -1, dtype=np.int64)
        for start, paths in self._paths.items():
            for end, path in paths.items():
                if len(path) > 1:
                    found[self._order[end], self._order[start]] = self._order[path[1]]
        return found

    @cached_property
    def _order(self) -> Mapping[str, int]:
        return {name: number for number, name in enumerate(self.switches)}

    @cached_property
    def _paths(self) -> Mapping[str, Mapping[str, tuple[str, ...]]]:
        found: Iterable[tuple[str, dict[str, list[str]]]] = networkx.all_pairs_dijkstra_path(
            self._graph
        )
        return {start: {end: tuple(path) for end, path in paths.items()} for start, paths in found}


def _weight(number: int, links: int) -> int:
    """Of link ``number``, so that no two ways between two switches weigh the same.

    One more link always weighs more; of as many, the way weighs less whose last link in the file's
    order, of those that the other has not, comes earlier.
    """
    return (1 << links) + (1 << number)
