"""Small networks for flows: hosts that only a plain switch, or nothing, is between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ina.fabric.shapes import star
from ina.sim.fabric import VirtualFabric
from ina.sim.topology import Cable, Topology, laid
from ina.sim.traffic import Flows, IncastSpec, TcpSpec, TrafficSpec, UdpSpec, add_traffic
from ina.sim.ways import Way

FOREVER_NS = 2**63 - 1
"""Until nothing more happens."""


def pair(way: Way, back: Way | None = None) -> Topology:
    """``h1`` and ``h2`` with a cable between them; ``way`` is from ``h1``."""
    return Topology(("h1", "h2"), {}, (Cable("h1", "h2", way, back or way),))


def plain_star(hosts: int, way: Way, back: Way | None = None) -> Topology:
    """As a star, without P4."""
    return laid(star(hosts), way, back, edge="plain")


def one_flow(fabric: VirtualFabric, size_kib: float, tcp: TcpSpec, **more: Any) -> Flows:
    """From ``h1`` to the last host."""
    spec = IncastSpec(
        sources=["h1"],
        destinations=[fabric.topology.hosts[-1]],
        size_kib=size_kib,
        tcp=tcp,
        **more,
    )
    return flows(fabric, [spec])[0]


def flows(fabric: VirtualFabric, specs: Sequence[TrafficSpec]) -> list[Flows]:
    """What is added, of TCP."""
    return [added for added in add_traffic(fabric, specs) if isinstance(added, Flows)]


def poisson_stream(bits_per_s: int, load: float, payload_bytes: int) -> UdpSpec:
    """Datagrams that load a way from ``h1``."""
    return UdpSpec(
        source="h1",
        destination="h2",
        rate_gbit=load * bits_per_s / 1e9,
        payload_bytes=payload_bytes,
        spacing="poisson",
    )
