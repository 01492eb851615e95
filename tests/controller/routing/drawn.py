"""Networks of tests: of known shapes, and at random."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from ina.controller.routing.demand import Demand
from ina.controller.routing.judge import judge, problems
from ina.controller.routing.loads import loads_of_job
from ina.controller.routing.network import NO_LIMIT, Network
from ina.controller.routing.plan import Plan, Stripe
from ina.controller.routing.policies.nearest import common_ancestor
from ina.controller.routing.policies.single import star
from ina.controller.routing.policy import Situation
from ina.fabric.graph import Fabric

RATE = 12.5e9
BYTES = 1e8
HOST_S = BYTES / RATE


def network_of(fabric: Fabric, processing: float = inf) -> Network:
    """Every cable of one rate; ``processing``: in those."""
    network = Network.of(
        fabric.switches,
        [(*it.switches, RATE) for it in fabric.links],
        [(str(address), it.switch, RATE) for address, it in fabric.hosts.items()],
    )
    return replace(network, processing=np.full(len(network), processing * RATE))


def some_jobs(
    network: Network, count: int, *, seed: int, workers: tuple[int, int], stripes: int
) -> tuple[Demand, ...]:
    """No two of them have a host in common."""
    rng = np.random.default_rng(seed)
    hosts, found = rng.permutation(len(network.host_names)).tolist(), []
    for number in range(count):
        size = int(rng.integers(workers[0], workers[1] + 1))
        mine, hosts = tuple(hosts[:size]), hosts[size:]
        found.append(Demand(f"job{number}", mine, BYTES, stripes=stripes))
    return tuple(found)


def three_switches(seed: int) -> Situation:
    """GRID's testbed: three switches, nine servers and one that makes results, with chance in what
    cables carry, in what switches sum, and in who works at what."""
    rng = np.random.default_rng(seed)
    switches, pairs = ["s0", "s1", "s2"], [("s0", "s1"), ("s1", "s2"), ("s0", "s2")]
    cables = [(*it, float(rng.choice([0.5, 1.0, 2.0])) * RATE) for it in pairs[: 2 + seed % 2]]
    cables.append((switches[int(rng.integers(3))], "server", RATE))
    hosts = [(f"h{number}", switches[number // 3], RATE) for number in range(9)]
    network = Network.of([*switches, "server"], cables, hosts)
    network = replace(network, processing=np.append(rng.choice([1.0, 2, 4], 3) * RATE, inf))
    jobs = np.array_split(rng.permutation(9), 1 + seed % 3)
    return Situation.of(
        network,
        [
            Demand(f"job{number}", tuple(it.tolist()), BYTES, stripes=1, server=3)
            for number, it in enumerate(jobs)
        ],
        seed=seed,
    )


def any_situation(seed: int, *, stripes: int = 1) -> Situation:
    """Few places, joined by chance, some of which are down, or do not sum, or have few slots."""
    rng = np.random.default_rng(seed)
    places = int(rng.integers(2, 8))
    pairs = [(int(rng.integers(it)), it) for it in range(1, places)]
    pairs += [
        (a, b) for a, b in rng.integers(places, size=(int(rng.integers(6)), 2)).tolist() if a != b
    ]
    names = [f"p{it}" for it in range(places)]
    hosts = rng.integers(places, size=int(rng.integers(3, 9))).tolist()
    network = Network.of(
        names,
        [(names[a], names[b], float(rng.choice([0.5, 1.0, 2.0])) * RATE) for a, b in pairs],
        [(f"h{it}", names[place], RATE) for it, place in enumerate(hosts)],
    )
    network = replace(
        network,
        processing=rng.choice([1.0, 3.0, inf], places) * RATE,
        sums=rng.random(places) < 0.9,
        slots=rng.choice([8, 16, NO_LIMIT], places),
        most_children=int(rng.choice([3, 5, 32])),
    )
    network = network.without(cables=np.flatnonzero(rng.random(len(pairs)) < 0.1).tolist())
    jobs = np.array_split(rng.permutation(len(hosts)), int(rng.integers(1, 4)))
    demands = [
        Demand(
            f"job{number}",
            tuple(it.tolist()),
            BYTES * float(rng.choice([0.1, 1.0])),
            slots=int(rng.choice([0, 4, 8])),
            stripes=stripes,
            server=int(rng.integers(places)) if rng.random() < 0.3 else None,
        )
        for number, it in enumerate(jobs)
    ]
    return Situation(network, tuple(demands), seed=seed)


def with_others(situation: Situation) -> Situation:
    """Beside one more job, like the first, all of whose workers send to one place."""
    demand = replace(situation.demands[0], slots=0)
    root = common_ancestor(situation.ways, demand)
    tree = star(situation.ways, demand, root, situation.network.slots)
    others = loads_of_job(situation.network, demand, (Stripe(1.0, tree),))
    return replace(situation, others=others)


def step_s(situation: Situation, plan: Plan) -> float:
    """With what others load; the plan can be carried out."""
    assert list(problems(situation.network, situation.demands, plan)) == []
    judged = judge(situation.network, situation.demands, plan)
    return (judged.loads + situation.base).step_s(situation.network)
