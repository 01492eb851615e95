"""How many packet-hops the virtual network makes a second: ``python -m tests.sim.speed``.

Seconds are those of one core's processor time, the best of some rounds, since others use the
machine, too.
"""

from __future__ import annotations

import time

from ina.fabric.shapes import fat_tree, star
from ina.sim.fabric import VirtualFabric
from ina.sim.topology import laid
from ina.sim.traffic import PoissonSpec, TcpSpec, add_traffic
from ina.sim.ways import Way
from tests.worlds.virtual.hand_job import add_workers, buffers, run_all

MS = 1_000_000
ROUNDS = 10
ELEMS = 1 << 16
WAY = Way(bits_per_s=10**10, delay_ns=2000)


def of_workers(count: int) -> float:
    """Millions a second, of all-reduces of so many workers with 64 values a packet."""
    best = 0.0
    with VirtualFabric(laid(star(count), WAY), seed=1) as fabric:
        workers = add_workers(fabric, fabric.topology.hosts)
        inputs, outputs = buffers(count, ELEMS)
        for _ in range(ROUNDS):
            hops, began_s = fabric.network.hops, time.process_time()
            run_all(fabric, workers, inputs, outputs)
            best = max(best, (fabric.network.hops - hops) / (time.process_time() - began_s) / 1e6)
    return best


def of_flows(k: int) -> tuple[int, float]:
    """Hosts of a fat-tree, and millions a second, of DCTCP's flows among them."""
    way = Way(bits_per_s=10**10, queue_bytes=500_000, marking="step", mark_bytes=100_000)
    topology = laid(fat_tree(k), way, edge="plain")
    with VirtualFabric(topology, seed=1) as fabric:
        add_traffic(fabric, [PoissonSpec(load=0.4, tcp=TcpSpec(algorithm="dctcp"))])
        began_s = time.process_time()
        fabric.network.run(2 * MS)
        return len(topology.hosts), fabric.network.hops / (time.process_time() - began_s) / 1e6


def main() -> None:
    """Prints them."""
    for count in (2, 4, 8, 16, 32):
        print(f"{count:5} workers: {of_workers(count):.2f} M packet-hops/s")
    for k in (8, 16):
        hosts, speed = of_flows(k)
        print(f"{hosts:5} hosts with DCTCP: {speed:.2f} M packet-hops/s")


if __name__ == "__main__":
    main()
