"""Makes a checked :class:`Topology` of what a file said; a problem names the file and the key."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any

from ina.emulate.errors import TopologyError
from ina.emulate.topology import (
    MAC,
    NAME,
    NETWORK_NAME,
    EmulatedLink,
    End,
    Host,
    Switch,
    Topology,
    derived_mac,
)
from ina.fabric.topology_json import SWITCH_END
from ina.switch.ports import MAX_PORT_NUMBER

ALL = "all"
"""As ``aggregator``: every switch sums."""
_SPARE_ADDRESS = 2
"""Workers send to the last but one address of the first host's subnet: no host has it, usually."""


@dataclass(frozen=True)
class Draft:
    """What a file said, with names of nodes and ends as text."""

    source: Path
    name: str
    hosts: Sequence[Host]
    switches: Sequence[Switch]
    links: Sequence[tuple[Sequence[str], Mapping[str, Any]]]
    """Two ends, and the other fields of :class:`EmulatedLink`."""
    aggregator: str | None
    """None: the first switch without ``runtime_json``. :data:`ALL`: each of those."""
    aggregator_address: IPv4Address | None
    """Of the first that sums; further ones have the addresses below."""
    controller: dict[str, Any]

    def problem(self, key: str, what: str) -> TopologyError:
        """An error that names file and key."""
        return TopologyError(f"{self.source}: {key}: {what}")


def network_name(source: Path, name: str) -> str:
    """``name``, or one made of the file's. Raises :class:`TopologyError`."""
    if not name:
        name = re.sub(r"[^a-z0-9_-]", "-", source.stem.lower()).strip("-_")[:24] or "network"
    if not NETWORK_NAME.fullmatch(name):
        raise TopologyError(
            f"{source}: name: {name!r}: want up to 24 lower-case letters, digits, - and _"
        )
    return name


def parse_interface(draft_source: Path, key: str, text: str) -> IPv4Interface:
    """``10.0.0.1/24``. Raises :class:`TopologyError`."""
    try:
        interface = IPv4Interface(text)
    except (AddressValueError, ValueError):
        raise TopologyError(f"{draft_source}: {key}: {text!r} is not IPV4/LENGTH") from None
    if "/" not in text:
        raise TopologyError(f"{draft_source}: {key}: {text!r} has no prefix length (as /24)")
    return interface


def make_mac(draft_source: Path, key: str, text: str, address: IPv4Address) -> str:
    """``text`` if it is a MAC address; empty: derived. Raises :class:`TopologyError`."""
    if not text:
        return derived_mac(address)
    if not MAC.fullmatch(text) or int(text[:2], 16) & 1:
        raise TopologyError(f"{draft_source}: {key}: {text!r} is no MAC address of a host")
    return text.lower()


def assemble(draft: Draft) -> Topology:
    """Raises :class:`TopologyError`."""
    _check_names(draft)
    links = _links(draft)
    topology = Topology(
        name=network_name(draft.source, draft.name),
        source=draft.source,
        hosts=tuple(draft.hosts),
        switches=tuple(draft.switches),
        links=links,
        aggregators=_aggregators(draft),
        controller=draft.controller,
    )
    _check_reach(draft, topology)
    return topology


def _check_names(draft: Draft) -> None:
    if not draft.hosts:
        raise draft.problem("hosts", "there is none")
    if not draft.switches:
        raise draft.problem("switches", "there is none")
    seen: dict[Any, str] = {}
    for table, nodes in (("hosts", draft.hosts), ("switches", draft.switches)):
        for node in nodes:
            key = f"{table}.{node.name}"
            if not NAME.fullmatch(node.name):
                raise draft.problem(key, "a name is a letter and up to 7 letters, digits and _")
            marks = [node.name, *((node.address.ip, node.mac) if isinstance(node, Host) else ())]
            for mark in marks:
                if mark in seen:
                    raise draft.problem(key, f"{mark} is {seen[mark]}'s too")
                seen[mark] = key
    for name in ("net", ALL):
        if name in seen:
            raise draft.problem(seen[name], "this name is taken by the emulation itself")


def _links(draft: Draft) -> tuple[EmulatedLink, ...]:
    hosts = {host.name for host in draft.hosts}
    switches = {switch.name for switch in draft.switches}
    used: dict[str, set[int]] = {name: set() for name in switches}
    named = [str(text) for ends, _ in draft.links for text in ends]
    for text in named:  # ports with a number first: the others take what is left
        match = SWITCH_END.fullmatch(text)
        if match and match[1] in used:
            used[match[1]].add(int(match[2]))
    taken: set[End] = set()
    links = []
    for index, (ends, fields) in enumerate(draft.links):
        key = f"links[{index}].ends"
        if len(ends) != 2:
            raise draft.problem(key, f"{len(ends)} ends: want 2")
        made = []
        for text in ends:
            end = _end(str(text), hosts, used)
            if end is None:
                raise draft.problem(key, f"{text!r} is no host, switch or switch port (as s1-p1)")
            if end.port is not None and not 1 <= end.port <= MAX_PORT_NUMBER - 1:
                raise draft.problem(key, f"{end}: ports are 1 to {MAX_PORT_NUMBER - 1}")
            if end in taken:
                raise draft.problem(key, f"{end} has a link already")
            taken.add(end)
            made.append(end)
        if made[0].node == made[1].node:
            raise draft.problem(key, f"{made[0].node} is at both ends")
        if made[0].port is None and made[1].port is None:
            raise draft.problem(key, "hosts at both ends: a host is attached to a switch")
        links.append(EmulatedLink((made[0], made[1]), **fields))
    for host in draft.hosts:
        if End(host.name) not in taken:
            raise draft.problem(f"hosts.{host.name}", "no link ends here")
    return tuple(links)


def _end(text: str, hosts: set[str], used: dict[str, set[int]]) -> End | None:
    """``h1``, ``s1-p1``, or ``s1`` for the first port that is free; None: no such thing."""
    if text in hosts:
        return End(text)
    match = SWITCH_END.fullmatch(text)
    if match and match[1] in used:
        return End(match[1], int(match[2]))
    if text not in used:
        return None
    port = next(number for number in range(1, 1000) if number not in used[text])
    used[text].add(port)
    return End(text, port)


def _aggregators(draft: Draft) -> dict[str, IPv4Address]:
    """Those that sum, in the order of the file, each with an address that nobody else has."""
    ours = [switch.name for switch in draft.switches if switch.runtime_json is None]
    if draft.aggregator not in (None, ALL):
        if draft.aggregator not in {switch.name for switch in draft.switches}:
            raise draft.problem("aggregator", f"no switch {draft.aggregator}")
        if draft.aggregator not in ours:
            raise draft.problem("aggregator", f"{draft.aggregator} runs a program of its own")
        ours = [draft.aggregator]
    elif draft.aggregator is None:
        ours = ours[:1]
    elif others := [switch.name for switch in draft.switches if switch.runtime_json is not None]:
        raise draft.problem("aggregator", f"{ALL}: {others[0]} runs a program of its own")
    if not ours:
        return {}
    first = draft.aggregator_address
    network = draft.hosts[0].address.network
    if first is None:
        if network.num_addresses < len(ours) + 3:
            raise draft.problem("aggregator_address", f"none is free in {network}: name one")
        first = network[-_SPARE_ADDRESS]
    addresses = {name: first - number for number, name in enumerate(ours)}
    owners = {host.address.ip: host.name for host in draft.hosts}
    for address in addresses.values():
        if address in owners:
            raise draft.problem(
                "aggregator_address", f"{address} is hosts.{owners[address]}'s: name another"
            )
    return addresses


def _check_reach(draft: Draft, topology: Topology) -> None:
    for host in topology.hosts:
        ways = topology.ports_towards(host.name, topology.fabric)
        lost = [switch.name for switch in topology.switches if switch.name not in ways]
        if lost:
            raise draft.problem(f"hosts.{host.name}", f"no way from {', '.join(lost)}")
