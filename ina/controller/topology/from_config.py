"""The fabric that a checked configuration describes, and its aggregators."""

from __future__ import annotations

from ipaddress import IPv4Address

from ina.controller.config import Config, SwitchConfig
from ina.fabric.graph import Fabric, Link, Place
from ina.fabric.ports import PortNumber
from ina.fabric.shapes import island
from ina.trees.aggregators import AggregatorPlace, Aggregators


def fabric_of(config: Config) -> Fabric:
    """What a checked configuration says."""
    data_ports = {switch.name: switch.data_port for switch in config.switches}
    return Fabric(
        tuple(data_ports),
        [
            Link(
                link.switches,
                link.ports or (data_ports[link.switches[0]], data_ports[link.switches[1]]),
                (link.rate_gbit or 0.0) * 1e9,
            )
            for link in config.links
        ],
        _hosts(config),
        data_ports,
    )


def island_of(config: Config, switch: SwitchConfig) -> Fabric:
    """One of its switches alone, with the hosts that can be behind it."""
    hosts = {
        address: Place(switch.name, port, mac)
        for address, (port, mac) in config.endpoints(switch).items()
    }
    return island(switch.name, hosts, switch.data_port)


def _hosts(config: Config) -> dict[IPv4Address, Place]:
    """In the order of the file; where one is behind two switches, the first counts."""
    found: dict[IPv4Address, Place] = {}
    behind = {switch.name: config.endpoints(switch) for switch in config.switches}
    for host in config.hosts:
        address, switch = IPv4Address(host.address), host.switch or config.switch.name
        port, mac = behind[switch][address]
        found.setdefault(address, Place(switch, port, mac, (host.rate_gbit or 0.0) * 1e9))
    return found


def aggregators_of(config: Config, fabric: Fabric, number: PortNumber) -> Aggregators:
    """What a checked configuration says."""
    places = []
    for it in config.aggregators:
        behind = next((at for at in config.switches if at.name == it.switch), config.switch)
        port = behind.data_port if it.port is None else it.port
        places.append(AggregatorPlace(it.name, behind.name, port, it.data_port))
    return Aggregators(fabric, places, number)
