"""Emulates the networks of the p4lang tutorials: their ``topology.json``."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ina.emulate.assemble import Draft, assemble, make_mac, parse_interface
from ina.emulate.errors import TopologyError
from ina.emulate.topology import Host, Switch, Topology
from ina.fabric.topology_json import read_topology_json

_ARP = re.compile(r"arp -i (\S+) -s (\S+) (\S+)")
_GATEWAY = re.compile(r"route add default gw (\S+) dev (\S+)")


def load_json(path: Path, *, ignore_runtime: bool = False) -> Topology:
    """Raises :class:`TopologyError` with the file and the key."""
    file = read_topology_json(path)
    hosts = []
    for name, host in file.hosts.items():
        address = parse_interface(path, f"hosts.{name}.ip", host.ip)
        mac = make_mac(path, f"hosts.{name}.mac", host.mac, address.ip)
        hosts.append(Host(name, address, mac, tuple(map(_modern, host.commands)), True))
    switches = []
    for name, switch in file.switches.items():
        runtime = None
        if switch.runtime_json and not ignore_runtime:
            runtime = _find(path, f"switches.{name}.runtime_json", switch.runtime_json)
        switches.append(Switch(name, "soft", runtime_json=runtime))
    return assemble(
        Draft(
            source=path,
            name="",
            hosts=hosts,
            switches=switches,
            links=[_link(path, index, link) for index, link in enumerate(file.links)],
            aggregator=None,
            aggregator_address=None,
            controller={},
        )
    )


def _link(path: Path, index: int, link: Sequence[Any]) -> tuple[Sequence[str], dict[str, Any]]:
    key = f"links[{index}]"
    if len(link) > 2 and not re.fullmatch(r"0(\.0*)?(ms|us|s)?", str(link[2])):
        raise TopologyError(
            f"{path}: {key}[2]: latency {link[2]!r}: links are emulated without; say 0"
        )
    if len(link) < 4:
        return link[:2], {}
    bandwidth = link[3]
    if isinstance(bandwidth, bool) or not isinstance(bandwidth, int | float) or bandwidth <= 0:
        raise TopologyError(f"{path}: {key}[3]: {bandwidth!r} is no bandwidth in Mbit/s")
    return link[:2], {"bandwidth_mbit": float(bandwidth)}


def _find(source: Path, key: str, name: str) -> Path:
    """The tutorials name it from the exercise's folder, which is the one above the topology's."""
    for folder in (Path(), source.parent, source.parent.parent):
        if (folder / name).is_file():
            return folder / name
    raise TopologyError(f"{source}: {key}: no file {name} here, beside this file or above it")


def _modern(command: str) -> str:
    """The tutorials' commands want net-tools, which many machines have no more."""
    arp, gateway = _ARP.fullmatch(command.strip()), _GATEWAY.fullmatch(command.strip())
    if arp and shutil.which("arp") is None:
        return f"ip neigh replace {arp[2]} lladdr {arp[3]} dev {arp[1]}"
    if gateway and shutil.which("route") is None:
        return f"ip route replace default via {gateway[1]} dev {gateway[2]}"
    return command
