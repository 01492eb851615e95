"""After cuts in random fabrics: where a plain search finds a tree, the job is moved, and the plan
is realised; and only there."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from ipaddress import IPv4Address
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.controller.errors import RoutingError
from ina.controller.routing.demand import Demand
from ina.controller.routing.forwarded import forwarded_trees
from ina.controller.routing.judge import problems
from ina.controller.routing.network import NetworkWays, network_of, with_down
from ina.controller.routing.plan import Plan, Stripe
from ina.controller.routing.planner import Planner
from ina.controller.routing.policies.ina import Ina
from ina.controller.routing.policy import Situation
from ina.controller.routing.realise import Realiser
from ina.fabric.graph import Fabric, Link, Place
from ina.fabric.outages import Down
from ina.protocol.spec import MAX_LEVELS
from tests.selection import LONG

CHAIN = 7
"""Switches in a row, of which all sum: more levels than there are."""


def fabric_of(rng: random.Random) -> Fabric:
    """Connected, sparse, with hosts behind some switches."""
    count = rng.randint(4, 16)
    names = [f"s{number}" for number in range(count)]
    joined = {(rng.randrange(at), at) for at in range(1, count)}
    for _ in range(rng.randint(0, count)):
        joined.add(tuple(sorted(rng.sample(range(count), 2))))  # type: ignore[arg-type]
    ports = Counter[str]()

    def port(name: str) -> int:
        ports[name] += 1
        return ports[name]

    pairs = sorted(joined)
    rng.shuffle(pairs)
    links = [Link((names[a], names[b]), (port(names[a]), port(names[b])), 1e9) for a, b in pairs]
    hosts = {}
    for number in range(rng.randint(4, 16)):
        switch = rng.choice(names)
        hosts[IPv4Address("10.0.0.1") + number] = Place(switch, port(switch), rate_bits_per_s=1e9)
    return Fabric(names, links, hosts)


def is_taken(fabric: Fabric, down: Down, start: str, end: str) -> bool:
    """Whether frames get there: the fabric's own way, all of it up."""
    way = fabric.path(start, end)
    links = (frozenset(pair) for pair in pairwise(way))
    return bool(way) and down.switches.isdisjoint(way) and down.links.isdisjoint(links)


def has_tree(
    fabric: Fabric, down: Down, racks: set[str], roots: list[str], levels: int = MAX_LEVELS
) -> bool:
    """By plain search: from each root downwards, level by level."""
    up = [name for name in fabric.switches if name not in down.switches]
    for root in roots:
        nodes, layer = {root}, [root]
        for _ in range(levels - 1):
            layer = [
                name
                for name in up
                if name not in nodes and any(is_taken(fabric, down, name, it) for it in layer)
            ]
            nodes.update(layer)
        if root in up and all(
            any(is_taken(fabric, down, rack, node) for node in nodes) for rack in racks
        ):
            return True
    return False


class Cut:
    """A fabric with jobs, and what is cut of it later."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.fabric = fabric_of(rng)
        self.network = network_of(self.fabric)
        hosts = list(range(len(self.fabric.hosts)))
        rng.shuffle(hosts)
        jobs = rng.randint(1, 4)
        self.demands = [
            Demand(
                f"job{number}",
                tuple(hosts[number::jobs]),
                stripes=rng.choice([1, 2, 8]),
                slots=rng.choice([0, 64]),
            )
            for number in range(jobs)
        ]
        links = rng.sample(self.fabric.links, min(len(self.fabric.links), rng.randint(1, 4)))
        switches = rng.sample(self.fabric.switches, int(rng.random() < 0.3))
        self.down = Down(frozenset(switches), frozenset(frozenset(link.switches) for link in links))

    def racks(self, demand: Demand) -> set[str]:
        places = list(self.fabric.hosts.values())
        return {places[host].switch for host in demand.hosts}

    def has_tree(self, demand: Demand, down: Down) -> bool:
        return has_tree(self.fabric, down, self.racks(demand), list(self.fabric.switches))

    def realise(self, demand: Demand, stripes: tuple[Stripe, ...]) -> None:
        """Raises what there is to raise."""
        ports = dict.fromkeys(range(len(demand)), 1)
        realiser = Realiser(self.fabric, self.network, ports, lambda _, port: int(port))
        realiser.forest(demand.places(self.network).tolist(), stripes)


def check(seed: int) -> None:
    cut = Cut(seed)
    planner = Planner(cut.network)
    for demand in cut.demands:
        planner.arrive([demand])  # all is joined, so there is a tree
        cut.realise(demand, planner.stripes(demand.name))
    broken = with_down(cut.network, cut.down)
    moved = planner.change(broken)
    for demand in cut.demands:
        assert (demand.name in planner.lost) == (not cut.has_tree(demand, cut.down))
        if demand.name in moved:
            stripes = planner.stripes(demand.name)
            assert list(problems(broken, [demand], Plan({demand.name: stripes}))) == []
            cut.realise(demand, stripes)
    planner.polish()
    for demand in planner.demands:
        cut.realise(demand, planner.stripes(demand.name))


@settings(max_examples=2000 if LONG else 25, deadline=None)
@given(st.integers(0, 1 << 30))
def test_a_job_is_moved_wherever_a_tree_is_left(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", [145, 191, 237, 242, 306])
def test_jobs_for_which_shortest_ways_have_too_many_levels(seed: int) -> None:
    check(seed)


@settings(max_examples=1000 if LONG else 12, deadline=None)
@given(st.integers(0, 1 << 30), st.integers(0, 2), st.data())
def test_roots_and_levels_that_a_job_may_have(seed: int, beside: int, data: st.DataObject) -> None:
    """As of a job below an aggregator, with nodes on hosts."""
    cut = Cut(seed)
    network = with_down(cut.network, cut.down)
    roots = data.draw(st.sets(st.sampled_from(range(len(cut.fabric.switches))), min_size=1))
    names = [cut.fabric.switches[root] for root in sorted(roots)]
    for demand in cut.demands:
        wanted = replace(demand, stripes=1, roots=tuple(sorted(roots)), levels_beside=beside)
        exists = has_tree(cut.fabric, cut.down, cut.racks(demand), names, MAX_LEVELS - beside)
        planner = Planner(network)
        try:
            planner.arrive([wanted])
        except RoutingError:
            assert not exists
            continue
        assert exists
        (stripe,) = planner.stripes(demand.name)
        assert stripe.tree.root in roots
        assert max(map(stripe.tree.level, stripe.tree.nodes)) <= MAX_LEVELS - beside
        cut.realise(wanted, (stripe,))


def test_no_node_has_more_children_than_it_has_bits() -> None:
    """Forty racks, each of which frames reach from the root in one step."""
    names = [f"s{number}" for number in range(41)]
    links = [Link(("s0", name), (at, 1), 1e9) for at, name in enumerate(names[1:], 1)]
    hosts = {
        IPv4Address("10.0.0.1") + at: Place(name, 99, rate_bits_per_s=1e9)
        for at, name in enumerate(names[1:])
    }
    network = network_of(Fabric(names, links, hosts))
    demand = Demand("wide", tuple(range(40)), stripes=1)
    (tree,) = forwarded_trees(NetworkWays(network), demand, network.sums)
    assert list(problems(network, [demand], Plan({"wide": (Stripe(1.0, tree),)}))) == []


def test_a_long_chain_has_a_tree_by_every_policy_that_is_ina() -> None:
    names = [f"s{number}" for number in range(CHAIN)]
    links = [Link((a, b), (1, 2), 1e9) for a, b in pairwise(names)]
    hosts = {
        IPv4Address("10.0.0.1") + at: Place(names[place], 9, rate_bits_per_s=1e9)
        for at, place in enumerate((0, CHAIN - 1))
    }
    fabric = Fabric(names, links, hosts)
    network = replace(network_of(fabric), most_levels=2)
    demand = Demand("train", (0, 1), stripes=1)
    plan = Ina().plan(Situation.of(network, [demand]))
    assert list(problems(network, [demand], plan)) == []
    planner = Planner(network)
    planner.arrive([demand])
    (stripe,) = planner.stripes("train")
    assert max(map(stripe.tree.level, stripe.tree.nodes)) <= 2
