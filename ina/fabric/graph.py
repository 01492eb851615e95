"""How switches and hosts are joined: who is behind which port, and the ways between switches. Pure.

Ways are those of :mod:`ina.fabric.ways`, links in the order of the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address

from ina.fabric.outages import Down
from ina.fabric.ports import PortRef
from ina.fabric.ways import FAR, Ints, Ways


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
        self._order = {name: number for number, name in enumerate(self.switches)}
        self._joined: dict[tuple[int, int], int] = {}
        for number, link in enumerate(self.links):
            one, other = (self._order[name] for name in link.switches)
            # A second cable is no other way.
            number = self._joined.setdefault((one, other), number)
            self._joined[other, one] = number

    def __contains__(self, switch: object) -> bool:
        return switch in self._order

    def order(self, switch: str) -> int:
        """Its number in the configuration."""
        return self._order[switch]

    def path(self, start: str, end: str) -> tuple[str, ...]:
        """The switches on the way, both ends among them; empty: there is none."""
        if end not in self:
            return ()
        way = self._paths.get((start, end))
        if way is None:
            numbers = self.ways.shortest(self._order[start], self._order[end])
            way = self._paths[start, end] = tuple(self.switches[it] for it in numbers)
        return way

    def hops(self, start: str, end: str) -> int | None:
        """Links on the way; None: there is none."""
        hops = int(self.ways.hops[self._order[start], self._order[end]])
        return None if hops == FAR else hops

    def port_towards(self, switch: str, other: str) -> PortRef:
        """The port of ``switch`` through which another one is reached.

        Raises :class:`KeyError`: no path of links joins them, or they are the same.
        """
        path = self.path(switch, other)
        if len(path) < 2:
            raise KeyError(other)
        return self.link(switch, path[1]).port_of(switch)

    def around(self, down: Down) -> Fabric:
        """The same less what is down: the ways that are left."""
        return Fabric(
            [it for it in self.switches if it not in down.switches],
            [it for it in self.links if down.leaves(it.switches)],
            {at: place for at, place in self.hosts.items() if place.switch not in down.switches},
            self.data_ports,
        )

    def link(self, one: str, other: str) -> Link:
        """The one that ways between two switches take, which it joins."""
        return self.links[self._joined[self._order[one], self._order[other]]]

    def ports_towards(self, other: str) -> dict[str, PortRef]:
        """By switch from which a way leads to another one: the port that frames go by."""
        return {
            switch: self.port_towards(switch, other)
            for switch in self.switches
            if switch != other and self.path(switch, other)
        }

    def ports_to_host(self, address: IPv4Address) -> dict[str, PortRef]:
        """By switch from which a way leads to a host; empty: it is behind no switch."""
        place = self.hosts.get(address)
        if place is None:
            return {}
        return {place.switch: place.port, **self.ports_towards(place.switch)}

    @cached_property
    def ways(self) -> Ways:
        """Between switches, by their numbers."""
        return Ways(len(self.switches), self._joined)

    @property
    def next_hops(self) -> Ints:
        """(switches, switches), by number: the next one on the way to the first from the second.

        -1: there is none.
        """
        return self.ways.next_places

    @cached_property
    def _paths(self) -> dict[tuple[str, str], tuple[str, ...]]:
        return {}
