"""The settings of the papers, and fat-trees with many jobs, each as cases. Pure.

Rates are in units of a host's cable.

* GRID (ToN 2023), abstract: three programmable switches, nine servers.
* GOAT (IWQoS 2023), its prototype's scenarios: 40 to 70 workers, 10 programmable switches in a
  fat-tree of 80 switches or a leaf-spine of 10 x 10 with 5 hosts a leaf; 16 layers of 15 units,
  memory 60; a share of 0 to 0.6 of the workers late.
* PANAMA (MLSys 2021), abstract: a folded Clos that jobs share with other traffic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

import numpy as np

from ina.controller.routing.demand import Demand
from ina.controller.routing.network import Ints, Network
from ina.fabric.graph import Fabric
from ina.fabric.shapes import fat_tree, leaf_spine
from ina.sim.routing.case import Setting, with_servers

LAYERS, LAYER_UNITS, MEMORY_UNITS = 16, 15, 60
_SLOTS_A_UNIT = 2  # an even number of slots is what a place gives


def unit_network(fabric: Fabric, *, up: float = 1.0) -> Network:
    """Hosts' cables have rate 1, links between switches ``up``."""
    return Network.of(
        fabric.switches,
        [(*link.switches, up) for link in fabric.links],
        [(str(address), place.switch, 1.0) for address, place in fabric.hosts.items()],
    )


def grid_cases(quick: bool) -> Iterator[Setting]:
    """Three switches joined to one another, three servers each, one of which makes results.

    18 variants: what switches sum in a second (line rates), how fast links between switches are,
    and behind which switch the server is.
    """
    speeds = [(4.0, 4.0, 4.0), (1.0, 1.0, 1.0), *dict.fromkeys(permutations((1.0, 2.0, 4.0)))]
    for up in (1.0,) if quick else (1.0, 0.5):
        for number, speed in enumerate(speeds[:3] if quick else [*speeds, (2.0, 2.0, 2.0)]):
            yield _grid_case(up, number % 3, speed)


def _grid_case(up: float, server_at: int, speed: tuple[float, ...]) -> Setting:
    names = ["s1", "s2", "s3"]
    hosts = [(f"h{at * 3 + it + 1}", names[at], 1.0) for at in range(3) for it in range(3)]
    network = Network.of(names, [("s1", "s2", up), ("s2", "s3", up), ("s1", "s3", up)], hosts)
    network = replace(network, processing=np.array(speed))
    served = next(number for number, host in enumerate(hosts) if host[1] == names[server_at])
    network, (server,) = with_servers(network, [server_at])
    workers = tuple(number for number in range(9) if number != served)
    said = "/".join(f"{it:g}" for it in speed)
    return Setting(
        f"links {up:g}, switches {said}, server at {names[server_at]}",
        network,
        (Demand("job", workers, server=server, stripes=16),),
    )


def goat_cases(quick: bool, seeds: int = 3) -> Iterator[Setting]:
    """By shape, workers and share of late ones."""
    for shape, fabric in (("fat-tree 80", fat_tree(8)), ("leaf-spine", leaf_spine(10, 10, 5))):
        for workers in (40,) if quick else (40, 50, 60, 70) if shape != "leaf-spine" else (40, 48):
            for late in (0.3,) if quick else (0.0, 0.3, 0.6):
                for seed in range(1 if quick else seeds):
                    yield _goat_case(shape, unit_network(fabric), workers, late, seed)


def _goat_case(shape: str, network: Network, workers: int, late: float, seed: int) -> Setting:
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(network.host_names)).tolist()
    server_at = int(network.host_places[order[0]])
    hosts = tuple(order[1 : workers + 1])
    programmable = rng.choice(len(network), 10, replace=False)
    sums = np.zeros(len(network), dtype=np.bool_)
    sums[programmable] = True
    slots = np.where(sums, MEMORY_UNITS * _SLOTS_A_UNIT, 0).astype(np.int64)
    network, (server,) = with_servers(replace(network, sums=sums, slots=slots), [server_at])
    who = frozenset(rng.permutation(workers)[: round(late * workers)].tolist())
    demand = Demand(
        "job",
        hosts,
        server=server,
        slots=LAYERS * LAYER_UNITS * _SLOTS_A_UNIT,
        stripes=LAYERS,
        sub_models=(1.0,) * LAYERS,
    )
    return Setting(f"{shape}, {workers} workers, {late:.0%} late", network, (demand,), {"job": who})


def panama_cases(quick: bool, seeds: int = 3) -> Iterator[Setting]:
    """A leaf-spine of 8 leaves with 8 hosts each and 4 spines, two to one oversubscribed; four jobs
    of 16 workers, and other traffic between random hosts, pinned to spines by a hash."""
    for load in (0.3,) if quick else (0.0, 0.3, 0.6):
        for seed in range(1 if quick else seeds):
            yield _panama_case(load, seed)


def _panama_case(load: float, seed: int) -> Setting:
    rng = np.random.default_rng(seed)
    network = unit_network(leaf_spine(4, 8, 8))
    taken = np.zeros(len(network.rates))
    spines = [network.place(f"spine{it}") for it in range(1, 5)]
    flows = 256
    size = load * len(network.rates) / (2 * flows)  # so that links are so full in the mean
    for _ in range(flows):
        one, other = rng.choice(8, 2, replace=False).tolist()
        spine = spines[int(rng.integers(4))]
        for leaf in (one, other):
            cable = network.cable_between[leaf, spine]
            taken[cable] = min(taken[cable] + size, 0.95)
    network = replace(network, rates=network.rates * (1 - taken))
    order = rng.permutation(64).tolist()
    demands = tuple(
        Demand(f"job{it}", tuple(order[16 * it : 16 * it + 16]), step_bytes=1.0, compute_s=1.0)
        for it in range(4)
    )
    return Setting(f"other traffic {load:.0%}", network, demands)


def fat_tree_cases(quick: bool) -> Iterator[Setting]:
    """Jobs that share out all hosts; of more jobs than half of the hosts, hosts have several."""
    for k in (4, 8) if quick else (4, 8, 16):
        network = unit_network(fat_tree(k))
        for jobs in (1, 10) if quick else (1, 10, 50):
            yield Setting(
                f"k = {k}, {jobs} job{'s' * (jobs > 1)}",
                network,
                tuple(_shared_out(network, jobs, k)),
            )


def _shared_out(network: Network, jobs: int, seed: int) -> Iterator[Demand]:
    rng = np.random.default_rng(seed)
    hosts = len(network.host_names)
    for number, part in enumerate(_parts(rng, hosts, jobs)):
        yield Demand(f"job{number}", tuple(part.tolist()))


def _parts(rng: np.random.Generator, hosts: int, jobs: int) -> list[Ints]:
    if 2 * jobs > hosts:
        return [rng.choice(hosts, 4, replace=False) for _ in range(jobs)]
    cuts = np.sort(rng.choice(np.arange(1, hosts // 2), jobs - 1, replace=False)) * 2
    return np.split(rng.permutation(hosts), cuts)
