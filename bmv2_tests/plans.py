"""Fabrics on paper: addresses of their hosts and switches, and what switches forward by."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bmv2_tests.forwarding import Forwarding, Route
from ina.fabric import shapes
from ina.fabric.graph import Fabric
from ina.fabric.ports import plain_number


@dataclass(frozen=True)
class HostPlace:
    """Where a host is: rack and number from 1; in a star all are in rack 0."""

    number: int
    rack: int
    port: int  # of its switch

    @property
    def name(self) -> str:
        return f"h{self.number}"

    @property
    def address(self) -> str:
        return f"10.0.{self.rack}.{self.number}"

    @property
    def mac(self) -> str:
        return f"02:00:0a:00:{self.rack:02x}:{self.number:02x}"

    @property
    def control_address(self) -> str:
        return f"10.255.0.{self.number}"

    @property
    def gateway(self) -> str:
        """Its switch's address: of aggregation, and of the way to other racks."""
        return f"10.0.{self.rack}.254"


def gateway_mac(rack: int) -> str:
    """Of the switch of a rack; the first spine's is that of rack 255."""
    return f"02:00:0a:00:{rack:02x}:fe"


SPINE = 255
"""The rack of the first spine, where no host is; others' count down from it."""


@dataclass(frozen=True)
class SwitchPlace:
    """A switch, which sums and forwards; hosts of its rack are behind it."""

    number: int
    rack: int
    forwarding: Forwarding

    @property
    def name(self) -> str:
        return f"s{self.number}"

    @property
    def control_address(self) -> str:
        return f"10.255.0.{200 + self.number}"

    @property
    def data_address(self) -> str:
        """Of aggregation; of a rack also its gateway to others."""
        return f"10.0.{self.rack}.254"

    @property
    def mac(self) -> str:
        """Of its data address."""
        return gateway_mac(self.rack)


@dataclass(frozen=True)
class Plan:
    """A topology on paper."""

    hosts: tuple[HostPlace, ...]
    switches: tuple[SwitchPlace, ...]
    trunks: tuple[tuple[str, int, str, int], ...] = ()
    """(switch, its port, switch, its port)."""

    def rack(self, rack: int) -> tuple[HostPlace, ...]:
        """Its hosts."""
        return tuple(place for place in self.hosts if place.rack == rack)


def star(hosts: int) -> Plan:
    """`hosts` hosts on one switch, in one network."""
    return _plan(shapes.star(hosts))


def two_racks(hosts_each: int) -> Plan:
    """Two leaves with hosts, each a network of its own, below a spine; all three sum and route."""
    return leaf_spine(1, 2, hosts_each)


def leaf_spine(spines: int, leaves: int, hosts_each: int) -> Plan:
    """Leaves with hosts, each a network of its own, all joined to each spine; all sum and route."""
    return _plan(shapes.leaf_spine(spines, leaves, hosts_each))


def _plan(fabric: Fabric) -> Plan:
    """Switches are ``s1`` ... in order. One alone is rack 0, and routes nothing."""
    numbers = {name: number for number, name in enumerate(fabric.switches, 1)}
    tops = {place.switch for place in fabric.hosts.values()}
    racks = {}
    for number, name in enumerate(it for it in fabric.switches if it in tops):
        racks[name] = number + 1 if fabric.links else 0
    for number, name in enumerate(it for it in fabric.switches if it not in tops):
        racks[name] = SPINE - number
    hosts = {
        address: HostPlace(number, racks[place.switch], plain_number(place.switch, place.port))
        for number, (address, place) in enumerate(fabric.hosts.items(), 1)
    }
    switches = []
    for name in fabric.switches:
        own = [hosts[at] for at, place in fabric.hosts.items() if place.switch == name]
        forwarding = Forwarding(
            flood=tuple(place.port for place in own),
            macs={place.mac: place.port for place in own},
        )
        if fabric.links:
            routes = (*_to_own(own, racks[name]), *_to_racks(fabric, name, racks))
            forwarding = replace(forwarding, router_mac=gateway_mac(racks[name]), routes=routes)
        switches.append(SwitchPlace(numbers[name], racks[name], forwarding))
    trunks = []
    for link in fabric.links:
        (one, one_port), (other, other_port) = (
            (f"s{numbers[it]}", plain_number(it, link.port_of(it))) for it in link.switches
        )
        trunks.append((one, one_port, other, other_port))
    return Plan(tuple(hosts.values()), tuple(switches), tuple(trunks))


def _to_own(hosts: list[HostPlace], rack: int) -> list[Route]:
    """To the hosts behind a switch."""
    return [Route(f"{it.address}/32", it.port, gateway_mac(rack), it.mac) for it in hosts]


def _to_racks(fabric: Fabric, switch: str, racks: dict[str, int]) -> list[Route]:
    """To the networks of all other switches, by the fabric's ways."""
    return [
        Route(
            f"10.0.{racks[other]}.0/24",
            plain_number(switch, fabric.port_towards(switch, other)),
            gateway_mac(racks[switch]),
            gateway_mac(racks[fabric.path(switch, other)[1]]),
        )
        for other in fabric.switches
        if other != switch
    ]
