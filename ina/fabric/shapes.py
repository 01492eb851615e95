"""Fabrics of known shapes: one switch, racks, leaf-spine, fat-trees of switches with k ports. Pure.

M. Al-Fares, A. Loukissas, A. Vahdat: A scalable, commodity data center network architecture.
SIGCOMM 2008, section 3, has the fat-tree: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2
cores, k/2 hosts behind each edge switch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from ina.fabric.errors import FabricError
from ina.fabric.graph import Fabric, Link, Place
from ina.fabric.ports import PortRef

FIRST_HOST = IPv4Address("10.0.0.1")
MAX_PORTS = 64


@dataclass(frozen=True)
class Rates:
    """Bits a second, each way."""

    host: float = 100e9
    up: float = 100e9
    """From a top of rack to the next level, and from there on."""


def island(
    switch: str, hosts: Mapping[IPv4Address, Place] | None = None, port: PortRef = 1
) -> Fabric:
    """One switch without links. Who is none of ``hosts`` is behind its ``port``."""
    return Fabric([switch], hosts=hosts, data_ports={switch: port})


def star(hosts: int, rates: Rates | None = None) -> Fabric:
    """Hosts around one switch, ``s1``. Raises :class:`FabricError`: there is none."""
    _check("star", hosts=hosts)
    made = _Maker(rates)
    made.rack("s1", hosts)
    return made.fabric(["s1"])


def racks(hosts: Sequence[int], pod: int = 0, rates: Rates | None = None) -> Fabric:
    """A tree: racks ``l1`` ... with so many hosts each, below one root, ``s1``.

    ``pod``: so many racks, or fewer, are below a switch ``a1`` ... of their own; 0: no such level.
    Raises :class:`FabricError`: a rack has no hosts, or there is no rack.
    """
    _check("racks", racks=len(hosts), hosts=min(hosts, default=1))
    made = _Maker(rates)
    below = [f"l{rack}" for rack in range(1, len(hosts) + 1)]
    for rack, count in zip(below, hosts, strict=True):
        made.rack(rack, count)
    levels = [below]
    if pod:
        above = [f"a{number // pod + 1}" for number in range(len(hosts))]
        for rack, top in zip(below, above, strict=True):
            made.join(rack, top)
        below = list(dict.fromkeys(above))
        levels.append(below)
    for name in below:
        made.join(name, "s1")
    return made.fabric([*(name for level in levels for name in level), "s1"])


def leaf_spine(
    spines: int,
    leaves: int,
    hosts_a_leaf: int,
    rates: Rates | None = None,
    names: tuple[str, str] = ("leaf{}", "spine{}"),
) -> Fabric:
    """Every leaf joined to every spine; leaves first. ``names``: by their numbers, from 1.

    Raises :class:`FabricError`: a number is not 1 or more.
    """
    _check("leaf-spine", spines=spines, leaves=leaves, hosts=hosts_a_leaf)
    made = _Maker(rates)
    tops = [names[1].format(number) for number in range(1, spines + 1)]
    below = [names[0].format(number) for number in range(1, leaves + 1)]
    for rack in below:
        made.rack(rack, hosts_a_leaf)
        for top in tops:
            made.join(rack, top)
    return made.fabric([*below, *tops])


def fat_tree(
    k: int,
    rates: Rates | None = None,
    names: tuple[str, str, str] = ("edge{}-{}", "agg{}-{}", "core{}-{}"),
    first: int = 0,
) -> Fabric:
    """Of switches with ``k`` ports: k^3/4 hosts. Edge switches first, cores last.

    ``names``: by the number of the pod, or of a core's group, and within it, from ``first``.
    Raises :class:`FabricError`: k is odd, below 2 or above 64.
    """
    if k < 2 or k % 2 or k > MAX_PORTS:
        raise FabricError(f"fat-tree: k {k}: want an even number, 2 to {MAX_PORTS}")
    made, half = _Maker(rates), k // 2
    edges, middles, cores = (
        [[name.format(row + first, it + first) for it in range(half)] for row in range(rows)]
        for name, rows in zip(names, (k, k, half), strict=True)
    )
    for pod in range(k):
        for edge in edges[pod]:
            made.rack(edge, half)
            for middle in middles[pod]:
                made.join(edge, middle)
        for middle, group in zip(middles[pod], cores, strict=True):
            for core in group:
                made.join(middle, core)
    return made.fabric([name for level in (edges, middles, cores) for row in level for name in row])


def _check(shape: str, **numbers: int) -> None:
    for name, value in numbers.items():
        if value < 1:
            raise FabricError(f"{shape}: {name} {value}: want 1 or more")


class _Maker:
    """Gives ports and addresses in turn."""

    def __init__(self, rates: Rates | None) -> None:
        self._rates = rates or Rates()
        self._ports: dict[str, int] = {}
        self._links: list[Link] = []
        self._hosts: dict[IPv4Address, Place] = {}

    def rack(self, switch: str, hosts: int) -> None:
        """Hosts behind a switch."""
        for _ in range(hosts):
            address = FIRST_HOST + len(self._hosts)
            self._hosts[address] = Place(
                switch, self._port(switch), rate_bits_per_s=self._rates.host
            )

    def join(self, one: str, other: str) -> None:
        """A cable between two switches."""
        ports = (self._port(one), self._port(other))
        self._links.append(Link((one, other), ports, self._rates.up))

    def fabric(self, switches: Sequence[str]) -> Fabric:
        """Of all that was joined."""
        return Fabric(switches, self._links, self._hosts)

    def _port(self, switch: str) -> int:
        number = self._ports[switch] = self._ports.get(switch, 0) + 1
        return number
