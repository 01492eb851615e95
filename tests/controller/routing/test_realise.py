"""Plans as trees of switches, and back: what frames do between nodes, ports, shares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.controller.errors import RoutingError
from ina.controller.routing.demand import Demand
from ina.controller.routing.judge import judge
from ina.controller.routing.network import Network, Rooms, network_of
from ina.controller.routing.plan import Plan, Stripe
from ina.controller.routing.planner import Planner
from ina.controller.routing.policies import policy
from ina.controller.routing.policy import Situation
from ina.controller.routing.realise import Realiser, stripes_of
from ina.fabric.graph import Fabric, Link, Place
from ina.fabric.outages import Down
from ina.fabric.shapes import Rates, fat_tree, leaf_spine
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest
from tests.selection import LONG


def _realised(
    fabric: Fabric, network: Network, demand: Demand, stripes: tuple[Stripe, ...]
) -> Forest:
    racks = demand.places(network).tolist()
    places = list(fabric.hosts.values())
    ports = {rank: int(places[host].port) for rank, host in enumerate(demand.hosts)}
    realiser = Realiser(fabric, network, ports, lambda _switch, port: int(port))
    return realiser.forest(racks, stripes)


def _arrives(fabric: Fabric, start: str, end: str, first_port: int | None, down: Down) -> int:
    """A frame from a switch to another's address: by its port, then as the network forwards.

    Returns the port at which it arrives."""
    at, port = start, first_port if first_port is not None else fabric.port_towards(start, end)
    while True:
        (link,) = [it for it in fabric.links if at in it.switches and it.port_of(at) == port]
        assert frozenset(link.switches) not in down.links
        at = next(it for it in link.switches if it != at)
        assert at not in down.switches
        if at == end:
            return int(link.port_of(at))
        port = fabric.port_towards(at, end)


def _check(fabric: Fabric, demand: Demand, forest: Forest, down: Down) -> None:
    """That every packet gets where the trees expect it, at the port where it is expected."""
    places = list(fabric.hosts.values())
    for tree in forest:
        seen = []
        for node in tree:
            for child, port in zip(node.nodes, node.ports, strict=True):
                below = tree[child]
                assert below.parent == node.switch
                assert _arrives(fabric, child, node.switch, below.parent_port, down) == port
                assert _arrives(fabric, node.switch, child, port, down) == below.parent_port
            for index, rank in enumerate(node.ranks):
                place = places[demand.hosts[rank]]
                seen.append(rank)
                if place.switch == node.switch:
                    assert not node.rank_ports or node.rank_ports[index] == place.port
                else:
                    arrives = _arrives(fabric, place.switch, node.switch, None, down)
                    assert node.rank_ports[index] == arrives
        assert sorted(seen) == list(range(len(demand)))


@st.composite
def _fabrics(draw: st.DrawFn) -> Fabric:
    count = draw(st.integers(2, 8))
    names = [f"s{number}" for number in range(count)]
    joined = {(draw(st.integers(0, at - 1)), at) for at in range(1, count)}
    more = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    joined |= {(min(it), max(it)) for it in draw(st.lists(more, max_size=10)) if it[0] != it[1]}
    ports = dict.fromkeys(names, 0)

    def port(name: str) -> int:
        ports[name] += 1
        return ports[name]

    links = [
        Link(
            (names[a], names[b]),
            (port(names[a]), port(names[b])),
            draw(st.sampled_from([1e9, 1e8])),
        )
        for a, b in draw(st.permutations(sorted(joined)))
    ]
    from ipaddress import IPv4Address

    hosts = {}
    for number in range(draw(st.integers(2, 12))):
        switch = draw(st.sampled_from(names))
        hosts[IPv4Address("10.0.0.1") + number] = Place(switch, port(switch), rate_bits_per_s=1e9)
    return Fabric(names, links, hosts)


@settings(max_examples=1500 if LONG else 40, deadline=None)
@given(_fabrics(), st.data())
def test_packets_arrive_where_trees_expect_them(fabric: Fabric, data: st.DataObject) -> None:
    cut = data.draw(st.sets(st.sampled_from(fabric.links), max_size=2)) if fabric.links else set()
    down = Down(links=frozenset(frozenset(link.switches) for link in cut))
    slow = data.draw(st.sampled_from([0.0, 1e7]))
    rooms = Rooms(bytes_per_s={fabric.switches[0]: slow} if slow else {})
    network = network_of(fabric, rooms, down)
    hosts = data.draw(st.lists(st.integers(0, len(fabric.hosts) - 1), min_size=1, max_size=6))
    demand = Demand("train", tuple(hosts), stripes=data.draw(st.sampled_from([1, 2, 8])))
    planner = Planner(network)
    try:
        planner.arrive([demand])
        forest = _realised(fabric, network, demand, planner.stripes("train"))
    except (RoutingError, JobRequestError):
        return
    _check(fabric, demand, forest, down)
    if not cut:
        back = stripes_of(
            fabric, network, range(len(demand)), demand.places(network).tolist(), forest
        )
        found = judge(network, [demand], Plan({"train": back}))
        assert found.step_s <= planner.step_s * (1 + 1e-9) + _host_s(demand, network)


def _host_s(demand: Demand, network: Network) -> float:
    """A step on the slowest cable of a host, alone on it."""
    hosts, ranks = np.unique(demand.hosts, return_counts=True)
    return float(np.max(demand.step_bytes * ranks / network.host_rates[hosts]))


def test_half_of_the_lanes_go_over_each_spine() -> None:
    fabric = leaf_spine(2, 3, 3, Rates(1e9, 0.5e9))
    network = network_of(fabric)
    demand = Demand("train", tuple(range(9)))
    plan = policy("ina").plan(Situation.of(network, [demand]))
    forest = _realised(fabric, network, demand, plan.stripes["train"])
    assert {tree.root.switch for tree in forest} == {"spine1", "spine2"}
    assert forest.shares == (1, 1)
    for tree in forest:
        assert [node.switch for node in tree] == [tree.root.switch, "leaf1", "leaf2", "leaf3"]
        assert tree["leaf2"].ranks == (3, 4, 5)
    _check(fabric, demand, forest, Down())


def test_what_only_passes_is_no_node_where_frames_go_that_way_anyhow() -> None:
    fabric = fat_tree(4)
    network = network_of(fabric)
    demand = Demand("train", (0, 4, 8), stripes=1)  # a host in each of three pods
    plan = policy("ina").plan(Situation.of(network, [demand]))
    planned = plan.stripes["train"][0].tree
    assert (
        sum(name.startswith("agg") for name in map(network.names.__getitem__, planned.nodes)) == 3
    )
    forest = _realised(fabric, network, demand, plan.stripes["train"])
    assert [node.switch[:4] for node in forest.trees[0]] == ["core", "edge", "edge", "edge"]
    _check(fabric, demand, forest, Down())


def test_frames_of_a_worker_that_passes_its_top_arrive_at_the_port_of_the_way() -> None:
    fabric = leaf_spine(1, 2, 2, Rates(1e9, 10e9))
    network = network_of(fabric, Rooms(forwarding=frozenset({"leaf1"})))
    demand = Demand("train", (0, 1, 2), stripes=1)
    plan = policy("ina").plan(Situation.of(network, [demand]))
    forest = _realised(fabric, network, demand, plan.stripes["train"])
    (tree,) = forest
    assert tree.first_node(0).switch == tree.first_node(1).switch == "spine1"
    assert tree["spine1"].rank_ports == (1, 1)
    _check(fabric, demand, forest, Down())


@pytest.mark.parametrize(
    ("shares", "parts"),
    [((1.0,), (1,)), ((0.5, 0.5), (1, 1)), ((0.7, 0.3), (11, 5)), ((0.98, 0.02), (15, 1))],
)
def test_shares_are_parts_of_lanes(shares: tuple[float, ...], parts: tuple[int, ...]) -> None:
    fabric = leaf_spine(2, 2, 1)
    network = network_of(fabric)
    demand = Demand("train", (0, 1), stripes=1)
    tree = policy("nearest").plan(Situation.of(network, [demand])).stripes["train"][0].tree
    forest = _realised(fabric, network, demand, tuple(Stripe(it, tree) for it in shares))
    assert forest.shares == parts


def test_a_way_that_frames_do_not_take_has_a_node_at_each_switch() -> None:
    """spine1 is the one that frames take by themselves; a job over spine2 has a node there."""
    fabric = leaf_spine(2, 2, 1)
    down = Down(links=frozenset({frozenset({"leaf1", "spine1"})}))
    network = network_of(fabric, None, down)
    demand = Demand("train", (0, 1), stripes=1)
    plan = policy("nearest").plan(Situation.of(network, [demand]))
    forest = _realised(fabric, network, demand, plan.stripes["train"])
    assert "spine2" in forest
    _check(fabric, demand, forest, down)
