"""A topology as a controller sees it: which P4 switches are joined, and who is behind which.

Hosts are behind the P4 switch that is nearest. Links are cables between P4 switches; where a plain
switch is between two of them, no job is summed over both, for it sends frames of a flow by any of
its shortest ways, and a node of a tree takes them at one port.
"""

from __future__ import annotations

from collections.abc import Sequence

from ina.fabric.graph import Fabric, Link, Place
from ina.sim.errors import ScenarioError
from ina.sim.topology import Cable, Topology
from ina.trees.errors import JobRequestError
from ina.trees.nearest import tree_over
from ina.trees.tree import Tree


def joined(topology: Topology) -> Fabric:
    """Its P4 switches, their links, and hosts behind them, in the topology's order."""
    links = [
        Link((cable.one, cable.other), (port, other_port), rate_bits_per_s(cable))
        for cable, port, other_port in topology.ports()
        if _sums(topology, cable.one) and _sums(topology, cable.other)
    ]
    hosts = {
        topology.addresses[host]: Place(
            top, topology.port_towards(top, host), rate_bits_per_s=host_rate(topology, host)
        )
        for host in topology.hosts
        if (top := topology.nearest(host, "p4"))
    }
    return Fabric([name for name in topology.switches if _sums(topology, name)], links, hosts)


def rate_bits_per_s(cable: Cable) -> float:
    """Of the slower way; 0: no packet waits for another."""
    return float(min(cable.there.bits_per_s, cable.back.bits_per_s))


def host_rate(topology: Topology, host: str) -> float:
    """Of its cable."""
    return next(rate_bits_per_s(it) for it in topology.cables if host in (it.one, it.other))


def are_islands(topology: Topology) -> bool:
    """Whether any P4 switch may sum any job, and the first that has room does.

    So where there is one, and where hosts are at plain switches, from where they reach all alike.
    """
    fabric = joined(topology)
    if fabric.links:
        return False
    return len(fabric.switches) == 1 or any(
        not _sums(topology, topology.switch_of(host)) for host in topology.hosts
    )


def tree_of(fabric: Fabric, topology: Topology, job: str, hosts: Sequence[str]) -> Tree:
    """Where a job is summed whose ranks are on these hosts, as policy ``nearest`` has it.

    Raises :class:`ScenarioError`: nowhere.
    """
    racks: dict[str, list[int]] = {}
    for rank, host in enumerate(hosts):
        place = fabric.hosts.get(topology.addresses[host])
        if place is None:
            raise ScenarioError(f"job {job!r}: no P4 switch is on a way to host {host}")
        racks.setdefault(place.switch, []).append(rank)
    try:
        return tree_over(fabric, racks, keep_tops=True)
    except JobRequestError as error:
        raise ScenarioError(f"job {job!r}: {error}") from None


def _sums(topology: Topology, switch: str) -> bool:
    return topology.switches.get(switch) == "p4"
