"""Fabrics of known shapes: one switch, leaf-spine, fat-trees of switches with k ports. Pure.

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


def leaf_spine(spines: int, leaves: int, hosts_a_leaf: int, rates: Rates | None = None) -> Fabric:
    """Every leaf joined to every spine. ``pods``: racks are named by them where there are several.

    Raises :class:`FabricError`: a number is not 1 or more.
    """
    for name, value in (("spines", spines), ("leaves", leaves), ("hosts", hosts_a_leaf)):
        if value < 1:
            raise FabricError(f"leaf-spine: {name} {value}: want 1 or more")
    rates = rates or Rates()
    made = _Maker(rates)
    tops = [f"spine{number}" for number in range(1, spines + 1)]
    racks = [f"leaf{number}" for number in range(1, leaves + 1)]
    for rack in racks:
        made.rack(rack, hosts_a_leaf)
        for top in tops:
            made.join(rack, top)
    return made.fabric([*racks, *tops])


def fat_tree(k: int, rates: Rates | None = None) -> Fabric:
    """Of switches with ``k`` ports: k^3/4 hosts. Edge switches first, cores last.

    Raises :class:`FabricError`: k is odd, below 2 or above 64.
    """
    if k < 2 or k % 2 or k > MAX_PORTS:
        raise FabricError(f"fat-tree: k {k}: want an even number, 2 to {MAX_PORTS}")
    made, half = _Maker(rates or Rates()), k // 2
    edges = [[f"edge{pod}-{it}" for it in range(half)] for pod in range(k)]
    middles = [[f"agg{pod}-{it}" for it in range(half)] for pod in range(k)]
    cores = [[f"core{group}-{it}" for it in range(half)] for group in range(half)]
    for pod in range(k):
        for edge in edges[pod]:
            made.rack(edge, half)
            for middle in middles[pod]:
                made.join(edge, middle)
        for middle, group in zip(middles[pod], cores, strict=True):
            for core in group:
                made.join(middle, core)
    return made.fabric([name for names in (edges, middles, cores) for row in names for name in row])


class _Maker:
    """Gives ports and addresses in turn."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
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
