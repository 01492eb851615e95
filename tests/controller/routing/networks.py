"""Networks and demands for tests: drawn, or of known shapes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np
from hypothesis import strategies as st

from ina.controller.routing.demand import Demand
from ina.controller.routing.network import NO_LIMIT, Network
from ina.fabric.graph import Fabric
from ina.fabric.shapes import fat_tree


def network_of(fabric: Fabric, *, up: float = 1.0, host: float = 1.0) -> Network:
    """Of a fabric, with these rates of all its links and hosts' cables."""
    return Network.of(
        fabric.switches,
        [(*link.switches, up) for link in fabric.links],
        [(str(address), place.switch, host) for address, place in fabric.hosts.items()],
    )


def jobs_on(network: Network, count: int, *, seed: int = 1, stripes: int = 8) -> list[Demand]:
    """Jobs that share out all hosts at random, of two and more workers."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(network.host_names)).tolist()
    cuts = np.sort(rng.choice(np.arange(1, len(order) // 2), count - 1, replace=False)) * 2
    parts = np.split(np.array(order), cuts)
    return [
        Demand(f"job{number}", tuple(map(int, part)), stripes=stripes)
        for number, part in enumerate(parts)
    ]


def fat_tree_network(k: int, *, up: float = 1.0) -> Network:
    """With hosts' cables of rate 1."""
    return network_of(fat_tree(k), up=up)


@dataclass(frozen=True)
class Drawn:
    """A network, jobs on it, and cables and places that fail later."""

    network: Network
    demands: tuple[Demand, ...]
    cables: tuple[int, ...]
    places: tuple[int, ...]


@st.composite
def drawn(draw: st.DrawFn, *, most_jobs: int = 4) -> Drawn:
    """A connected network of up to 10 switches, some of which may not sum, or have little room or
    little speed."""
    count = draw(st.integers(2, 10))
    rate = st.sampled_from([0.1, 1.0, 1.0, 10.0])
    joined = {(draw(st.integers(0, at - 1)), at) for at in range(1, count)}
    more = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    joined |= {(min(it), max(it)) for it in draw(st.lists(more, max_size=12)) if it[0] != it[1]}
    names = [f"s{number}" for number in range(count)]
    cables = [(names[a], names[b], draw(rate)) for a, b in sorted(joined)]
    places = draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=24))
    hosts = [(f"h{number}", names[at], draw(rate)) for number, at in enumerate(places)]
    network = Network.of(names, cables, hosts)
    slots = st.sampled_from([NO_LIMIT, NO_LIMIT, 64, 16])
    speed = st.sampled_from([inf, inf, 4.0, 1.0])
    network = replace(
        network,
        sums=np.array([draw(st.sampled_from([True, True, True, False])) for _ in names]),
        slots=np.array([draw(slots) for _ in names], dtype=np.int64),
        processing=np.array([draw(speed) for _ in names]),
    )
    return Drawn(
        network,
        tuple(
            _demand(draw, number, len(hosts)) for number in range(draw(st.integers(1, most_jobs)))
        ),
        tuple(draw(st.sets(st.integers(0, len(cables) - 1), max_size=3))),
        tuple(draw(st.sets(st.integers(0, count - 1), max_size=1))),
    )


def _demand(draw: st.DrawFn, number: int, hosts: int) -> Demand:
    chosen = draw(st.lists(st.integers(0, hosts - 1), min_size=1, max_size=hosts))
    return Demand(
        f"job{number}",
        tuple(chosen),
        step_bytes=draw(st.sampled_from([1.0, 1.0, 8.0])),
        slots=draw(st.sampled_from([0, 8, 16])),
        stripes=draw(st.sampled_from([1, 2, 4, 8])),
        sub_models=tuple(draw(st.lists(st.sampled_from([1.0, 2.0, 3.0]), max_size=5))),
    )
