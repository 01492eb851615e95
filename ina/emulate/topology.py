"""What shall be emulated, whichever file described it: hosts, switches, links. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any, Literal

from ina.emulate.errors import TopologyError
from ina.fabric.graph import Fabric, Place
from ina.fabric.graph import Link as Cable
from ina.fabric.outages import Outages
from ina.fabric.ports import plain_number

SwitchKind = Literal["soft", "bmv2", "xdp"]

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,7}")
"""Of hosts and switches: with a port behind it, it is an interface's name of 15 bytes at most."""
NETWORK_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,23}")
MAC = re.compile(r"([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")

DEFAULT_QUEUE_KIB = 512
"""Of a link with a bandwidth. A worker's window of 256 packets of 1.5 KiB fits in."""


@dataclass(frozen=True)
class Host:
    """One host; its interface is always eth0."""

    name: str
    address: IPv4Interface
    mac: str
    commands: tuple[str, ...] = ()
    """Run on it by a shell when the network is up."""
    commands_may_fail: bool = False
    """As in the p4lang tutorials, where nobody looks: then it is only told."""
    ranks: int = 1
    """Of a job, on this host."""


@dataclass(frozen=True)
class Switch:
    """One switch."""

    name: str
    kind: SwitchKind
    loss_rate: float = 0.0
    """Share of packets that each of its ports drops, in each direction; soft switch only."""
    loss_seed: int = 0
    runtime_json: Path | None = None
    """Somebody else's program and table entries. Without: ina's."""


@dataclass(frozen=True)
class End:
    """Where a link ends: a host's eth0 (``port`` None), or a port of a switch."""

    node: str
    port: int | None = None

    def __str__(self) -> str:
        return self.node if self.port is None else f"{self.node}-p{self.port}"


@dataclass(frozen=True)
class EmulatedLink:
    """A cable."""

    ends: tuple[End, End]
    bandwidth_mbit: float | None = None
    """In each direction; None: as fast as the machine."""
    queue_kib: int = DEFAULT_QUEUE_KIB
    """At each end, for what has to wait; more is dropped. Without a bandwidth nothing waits."""
    loss_rate: float = 0.0
    """Share of packets lost in each direction; needs a soft switch at one end."""


@dataclass(frozen=True)
class Topology:
    """A checked network."""

    name: str
    source: Path
    hosts: tuple[Host, ...]
    switches: tuple[Switch, ...]
    links: tuple[EmulatedLink, ...]
    aggregators: Mapping[str, IPv4Address]
    """The switches that sum, which the controller programs, and where workers and other switches
    send to: in the order of ``switches``. Empty: none runs ina's program."""
    controller: dict[str, Any]
    """Keys of the controller's configuration beside those that follow from the topology."""

    def host(self, name: str) -> Host:
        """Raises :class:`TopologyError` if there is none of this name."""
        for host in self.hosts:
            if host.name == name:
                return host
        known = ", ".join(host.name for host in self.hosts)
        raise TopologyError(f"{self.source}: no host {name}: have {known}")

    def device_id(self, switch: str) -> int:
        """P4Runtime device id: the switches' order, from 1."""
        return [s.name for s in self.switches].index(switch) + 1

    def ports(self, switch: str) -> dict[int, tuple[EmulatedLink, End]]:
        """By port number: the link there, and its other end."""
        found = {}
        for link in self.links:
            for end, other in (link.ends, link.ends[::-1]):
                if end.node == switch and end.port is not None:
                    found[end.port] = (link, other)
        return dict(sorted(found.items()))

    @cached_property
    def fabric(self) -> Fabric:
        """The same as the controller sees it, and the ways that frames take."""
        links, hosts = [], {}
        for link in self.links:
            (a, a_port), (b, b_port) = ((end.node, end.port) for end in link.ends)
            if a_port is not None and b_port is not None:
                links.append(Cable((a, b), (a_port, b_port), _bits_per_s(link)))
                continue
            (host,) = (end.node for end in link.ends if end.port is None)
            (end,) = (end for end in link.ends if end.port is not None)
            assert end.port is not None
            made = self.host(host)
            mac = int(made.mac.replace(":", ""), 16)
            hosts[made.address.ip] = Place(end.node, end.port, mac, _bits_per_s(link))
        return Fabric([switch.name for switch in self.switches], links, hosts)

    def ports_towards(self, target: str, over: Fabric) -> dict[str, int]:
        """By switch: the port of the way to ``target``, a host or a switch, where there is one.

        ``over``: :attr:`fabric`, or what is left of it.
        """
        addresses = {host.name: host.address.ip for host in self.hosts}
        if target in addresses:
            ports = over.ports_to_host(addresses[target])
        else:
            ports = over.ports_towards(target)
        return {switch: plain_number(switch, port) for switch, port in ports.items()}

    def switch_mac(self, switch: str) -> str:
        """The address that frames to a switch itself carry."""
        return f"02:69:6e:61:00:{self.device_id(switch):02x}"


def outages_of(topology: Topology) -> Outages:
    """Of its switches and the links between them, all of which are up."""
    fabric = topology.fabric
    return Outages(fabric.switches, [link.switches for link in fabric.links])


def with_kind(topology: Topology, kind: SwitchKind | None) -> Topology:
    """The same network of other switches. Raises :class:`TopologyError`: they cannot do it."""
    if kind is not None:
        switches = tuple(replace(switch, kind=kind) for switch in topology.switches)
        topology = replace(topology, switches=switches)
    check_loss(topology)
    return topology


def with_placement(topology: Topology, placement: str) -> Topology:
    """With jobs placed by another policy than the file says; empty: by that one."""
    if not placement:
        return topology
    return replace(topology, controller={**topology.controller, "placement": placement})


def _bits_per_s(link: EmulatedLink) -> float:
    """0: as fast as the machine."""
    return (link.bandwidth_mbit or 0.0) * 1e6


def check_loss(topology: Topology) -> None:
    """BMv2 loses no packets on purpose. Raises :class:`TopologyError`."""
    kinds = {switch.name: switch.kind for switch in topology.switches}
    how = "BMv2 loses no packets on purpose; use another switch, or a small queue_kib"
    for switch in topology.switches:
        if switch.kind == "bmv2" and switch.loss_rate:
            raise TopologyError(f"{topology.source}: switches.{switch.name}.loss_rate: {how}")
    for index, link in enumerate(topology.links):
        if link.loss_rate and {kinds.get(end.node) for end in link.ends} <= {"bmv2", None}:
            raise TopologyError(f"{topology.source}: links[{index}].loss_rate: {how}")


def check_capture(topology: Topology) -> None:
    """What the kernel's switch takes, a capture at its ports does not see. Raises
    :class:`TopologyError`."""
    for switch in topology.switches:
        if switch.kind == "xdp":
            how = "frames at its ports are captured by nobody; capture at a host's eth0 instead"
            raise TopologyError(f"{topology.source}: --pcap: switch {switch.name} is XDP's: {how}")


def derived_mac(address: IPv4Address) -> str:
    """02:00 and the IPv4 address, as the controller derives it."""
    return "02:00:" + ":".join(f"{byte:02x}" for byte in address.packed)
