"""Forwarding on any network: whoever follows the switches' ports comes to the target."""

from __future__ import annotations

from ipaddress import IPv4Interface
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ina.emulate.assemble import Draft, assemble
from ina.emulate.nodes import controller_config
from ina.emulate.programming import plan_switches
from ina.emulate.topology import EmulatedLink, End, Host, Switch, Topology, derived_mac
from tests.worlds.processes.emulations import forwarding_of


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Connected switches, some with more cables than a tree has; one to six hosts."""
    count = draw(st.integers(1, 7))
    cables = [(f"s{draw(st.integers(0, new - 1))}", f"s{new}") for new in range(1, count)]
    if count > 1:
        pairs = st.lists(st.integers(0, count - 1), min_size=2, max_size=2, unique=True)
        cables += [(f"s{a}", f"s{b}") for a, b in draw(st.lists(pairs, max_size=6))]
    hosts = draw(st.integers(1, 6))
    cables += [(f"h{n}", f"s{draw(st.integers(0, count - 1))}") for n in range(hosts)]
    addresses = [IPv4Interface(f"10.0.0.{n + 1}/24") for n in range(hosts)]
    return assemble(
        Draft(
            source=Path("random.toml"),
            name="",
            hosts=[Host(f"h{n}", a, derived_mac(a.ip)) for n, a in enumerate(addresses)],
            switches=[Switch(f"s{n}", "soft") for n in range(count)],
            links=[(ends, {}) for ends in draw(st.permutations(cables))],
            aggregator=None,
            aggregator_address=None,
            controller={},
        )
    )


@given(topologies())
def test_ports_lead_to_every_host_and_switch(topology: Topology) -> None:
    names = [host.name for host in topology.hosts] + [switch.name for switch in topology.switches]
    for target in names:
        ways = topology.ports_towards(target, topology.fabric)
        for start in topology.switches:
            here, hops = start.name, 0
            while here != target:
                _, end = topology.ports(here)[ways[here]]
                here, hops = end.node, hops + 1
                assert hops <= len(topology.switches)  # no loop


@given(topologies())
def test_contributions_arrive_where_the_controller_expects_them(topology: Topology) -> None:
    """Follows the switches' own table entries from each host to the aggregator."""
    plans = {plan.name: plan for plan in plan_switches(topology, 64)}
    (aggregator,) = topology.aggregators
    ports = {host.address: host.port for host in controller_config(topology).hosts}
    for host in topology.hosts:
        (here,) = (
            e for link in topology.links for e in link.ends if str(_other(link, e)) == host.name
        )
        while here.node != aggregator:
            table = forwarding_of(plans[here.node])
            _, here = topology.ports(here.node)[table[topology.switch_mac(aggregator)]]
        assert ports[str(host.address.ip)] == here.port


def _other(link: EmulatedLink, end: End) -> End:
    return link.ends[1] if end is link.ends[0] else link.ends[0]


@given(topologies())
def test_no_two_cables_share_a_port(topology: Topology) -> None:
    ends = [end for link in topology.links for end in link.ends]
    assert len(set(ends)) == len(ends)
    assert {end.node for end in ends} >= {host.name for host in topology.hosts}
