"""Networks that Mininet builds, on paper: whoever sends arrives."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest

from bmv2_tests.forwarding import Route
from bmv2_tests.plans import HostPlace, Plan, SwitchPlace, leaf_spine, star, two_racks


def _route(switch: SwitchPlace, to: HostPlace) -> Route:
    """The longest prefix that the address has."""
    found = [
        (IPv4Network(it.prefix).prefixlen, it)
        for it in switch.forwarding.routes
        if IPv4Address(to.address) in IPv4Network(it.prefix)
    ]
    return max(found, key=lambda pair: pair[0])[1]


@pytest.mark.parametrize("plan", [two_racks(3), leaf_spine(2, 3, 2)], ids=["racks", "spines"])
def test_routes_lead_from_every_host_to_every_other(plan: Plan) -> None:
    at = {place.mac: place for place in plan.switches}
    beyond = {
        end: other
        for one, port, two, two_port in plan.trunks
        for end, other in (((one, port), two), ((two, two_port), one))
    }
    for to in plan.hosts:
        for here in plan.switches:
            mac, hops = here.mac, 0
            while mac != to.mac:
                switch = at[mac]
                assert switch.forwarding.router_mac == mac
                route = _route(switch, to)
                assert route.src_mac == mac
                mac, hops = route.dst_mac, hops + 1
                if mac != to.mac:
                    assert beyond[switch.name, route.port] == at[mac].name
            assert hops <= 3
            assert route.port == to.port


def test_a_star_is_one_network_that_nobody_routes() -> None:
    (switch,) = star(3).switches
    assert switch.forwarding.flood == (1, 2, 3)
    assert switch.forwarding.macs == {it.mac: it.port for it in star(3).hosts}
    assert not switch.forwarding.routes
