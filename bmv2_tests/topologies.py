"""The topologies. Every node but the bridge itself has a second leg in the control network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bmv2_tests.forwarding import Forwarding, Route
from bmv2_tests.switches import CLASSES, CONTROL_PORT, ControlBridge

from mininet.topo import Topo  # isort: skip - Mininet can be imported only now

CONTROLLER = "c0"
CONTROLLER_ADDRESS = "10.255.0.254"


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
    places = tuple(HostPlace(n, 0, n) for n in range(1, hosts + 1))
    forwarding = Forwarding(
        flood=tuple(place.port for place in places),
        macs={place.mac: place.port for place in places},
    )
    return Plan(places, (SwitchPlace(1, 0, forwarding),))


def two_racks(hosts_each: int) -> Plan:
    """Two leaves with hosts, each a network of its own, below a spine; all three sum and route."""
    return leaf_spine(1, 2, hosts_each)


def leaf_spine(spines: int, leaves: int, hosts_each: int) -> Plan:
    """Leaves with hosts, each a network of its own, all joined to each spine; all sum and route.

    Between racks the first spine routes.
    """
    racks = range(1, leaves + 1)
    places = tuple(
        HostPlace((rack - 1) * hosts_each + n, rack, n)
        for rack in racks
        for n in range(1, hosts_each + 1)
    )
    switches = []
    for rack in racks:
        own = [place for place in places if place.rack == rack]
        first_trunk = hosts_each + 1  # of a leaf, towards the first spine
        switches.append(
            SwitchPlace(
                rack,
                rack,
                Forwarding(
                    flood=tuple(place.port for place in own),
                    macs={place.mac: place.port for place in own},
                    router_mac=gateway_mac(rack),
                    routes=(
                        *(
                            Route(f"{place.address}/32", place.port, gateway_mac(rack), place.mac)
                            for place in own
                        ),
                        Route("10.0.0.0/16", first_trunk, gateway_mac(rack), gateway_mac(SPINE)),
                    ),
                ),
            )
        )
    trunks = []
    for spine in range(spines):
        mac = gateway_mac(SPINE - spine)
        routes = tuple(Route(f"10.0.{rack}.0/24", rack, mac, gateway_mac(rack)) for rack in racks)
        place = SwitchPlace(
            leaves + 1 + spine, SPINE - spine, Forwarding(router_mac=mac, routes=routes)
        )
        switches.append(place)
        # A spine's port r is rack r's.
        trunks += [(f"s{rack}", hosts_each + 1 + spine, place.name, rack) for rack in racks]
    return Plan(places, tuple(switches), tuple(trunks))


class PlanTopo(Topo):  # type: ignore[misc]
    """A plan for Mininet."""

    def build(  # type: ignore[no-untyped-def]
        self, plan: Plan, kind: str, folder: Path, **switch_options: Any
    ):
        """``kind``: a key of CLASSES; ``switch_options`` go to its constructor."""
        self.addSwitch("b1", cls=ControlBridge)
        self.addHost(CONTROLLER, ip=None)
        self._control(CONTROLLER, CONTROLLER_ADDRESS, "eth0")
        for switch in plan.switches:
            options = {"folder": folder, **switch_options}
            self.addSwitch(switch.name, cls=CLASSES[kind], **options)
            self._control(switch.name, switch.control_address, None, port1=CONTROL_PORT)
        for host in plan.hosts:
            # Mininet would give addresses by itself.
            self.addHost(host.name, ip=None)
            rack = next(s for s in plan.switches if s.rack == host.rack)
            self.addLink(
                host.name,
                rack.name,
                port1=0,
                port2=host.port,
                intfName1="eth0",
                addr1=host.mac,
                params1={"ip": f"{host.address}/24"},
            )
            self._control(host.name, host.control_address, "eth1", port1=1)
        for left, left_port, right, right_port in plan.trunks:
            self.addLink(left, right, port1=left_port, port2=right_port)

    def _control(self, node: str, address: str, interface: str | None, **options: Any) -> None:
        named = {"intfName1": interface} if interface else {}
        self.addLink(node, "b1", params1={"ip": f"{address}/24"}, **named, **options)
