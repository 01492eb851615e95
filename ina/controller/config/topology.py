"""The fabric that a checked configuration describes, its aggregators, and the ``topology.json``
that a configuration may name in place of its tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import AddressValueError, IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any

from ina.controller.config.tables import Config, SwitchConfig
from ina.fabric.graph import Fabric, Link, Place
from ina.fabric.ports import PortNumber
from ina.fabric.shapes import island
from ina.fabric.topology_json import SWITCH_END, HostTable, TopologyError, read_topology_json
from ina.trees.aggregators import AggregatorPlace, Aggregators

_End = tuple[str, int]
"""A switch and its port."""


def with_topology(document: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The document with ``link`` and ``host`` in place of ``topology``, a path from ``folder``.

    Switches keep their names: the document's ``switch`` tables say how each is reached. Raises
    :class:`TopologyError` with file and key.
    """
    rest = {key: value for key, value in document.items() if key != "topology"}
    named = document["topology"]
    if not isinstance(named, str):
        raise TopologyError("want the path of a topology.json")
    for key in ("link", "host"):
        if key in rest:
            raise TopologyError(f"{named} says it: leave out {key}")
    path = folder / named
    said = read_topology_json(path)
    tables = rest.get("switch", [])
    listed = tables if isinstance(tables, list) else [tables]
    known = {it.get("name") for it in listed if isinstance(it, dict)}
    for name in said.switches:
        if name not in known:
            raise TopologyError(f"{path}: switches.{name}: no [[switch]] has this name")
    links: list[dict[str, Any]] = []
    behind: dict[str, _End] = {}
    taken: set[str] = set()
    rates: dict[str, float | None] = {}
    for index, (one, other, *more) in enumerate(said.links):
        where = f"{path}: links[{index}]"
        rate_gbit = _rate_gbit(where, more)
        ends = [_end(where, str(text), said.hosts, said.switches) for text in (one, other)]
        for text in map(str, (one, other)):
            if text in taken:
                what = "is behind a switch" if text in said.hosts else "has a link"
                raise TopologyError(f"{where}: {text} {what} already")
            taken.add(text)
        if ends[0] is None and ends[1] is None:
            raise TopologyError(f"{where}: hosts at both ends: a host is attached to a switch")
        if ends[0] is not None and ends[1] is not None:
            (a, a_port), (b, b_port) = ends[0], ends[1]
            links.append({"switches": [a, b], "ports": [a_port, b_port], "rate_gbit": rate_gbit})
            continue
        host, end = (one, ends[1]) if ends[0] is None else (other, ends[0])
        assert end is not None
        behind[host], rates[host] = end, rate_gbit
    hosts = []
    for name, table in said.hosts.items():
        if name not in behind:
            raise TopologyError(f"{path}: hosts.{name}: no link ends here: it is behind no switch")
        host = _host(f"{path}: hosts.{name}", table, behind[name])
        hosts.append({**host, "rate_gbit": rates[name]})
    return {**rest, "link": links, "host": hosts}


def _end(
    where: str, text: str, hosts: Mapping[str, Any], switches: Mapping[str, Any]
) -> _End | None:
    """None: a host."""
    if text in hosts:
        return None
    match = SWITCH_END.fullmatch(text)
    if match is None or match[1] not in switches:
        raise TopologyError(f"{where}: {text!r} is no host and no switch's port (as s1-p1)")
    return match[1], int(match[2])


def _rate_gbit(where: str, more: Sequence[Any]) -> float | None:
    """Of a link's latency and bandwidth in Mbit/s, which may be left out; None: not known.

    Raises :class:`TopologyError`.
    """
    if len(more) < 2:
        return None
    mbit = more[1]
    if isinstance(mbit, bool) or not isinstance(mbit, (int, float)) or not 0 < mbit <= 1e9:
        raise TopologyError(f"{where}: bandwidth {mbit!r}: want Mbit/s, more than 0, to 1e9")
    return mbit / 1e3


def _host(where: str, table: HostTable, end: _End) -> dict[str, Any]:
    try:
        address = IPv4Interface(table.ip).ip
    except (AddressValueError, ValueError):
        raise TopologyError(f"{where}.ip: {table.ip!r} is not IPV4/LENGTH") from None
    return {"address": str(address), "switch": end[0], "port": end[1], "mac": table.mac}


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
