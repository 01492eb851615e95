"""The pool program between network namespaces: a worker in each, on a veth port of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ina.switch.ports import AfPacketPort, Port
from ina.switch.server import SoftSwitch
from ina.switch.targets import default_target
from tests.worlds.fakes.p4runtime import Client
from tests.worlds.processes.namespaces import hosts, ip
from tests.worlds.processes.pool import PoolJob, Worker, pool_config

WORKERS, VALUES, ROUNDS = 3, 256, 20
SWITCH_ADDRESS, SWITCH_MAC = "10.77.0.254", "02:00:0a:4d:00:fe"


def test_sums_across_namespaces(cache_dir: Path) -> None:
    with hosts(WORKERS) as machines:
        for host in machines:
            neighbour = (SWITCH_ADDRESS, "lladdr", SWITCH_MAC, "dev", "eth0")
            ip("-n", host.namespace, "neigh", "add", *neighbour)
        ports: list[Port] = [
            AfPacketPort(number + 1, host.interface) for number, host in enumerate(machines)
        ]
        workers = [
            Worker(host.udp_socket(), number + 1, int(host.mac.replace(":", ""), 16))
            for number, host in enumerate(machines)
        ]
        with (
            SoftSwitch(ports, target=default_target(cache_dir)) as switch,
            Client(switch.grpc_addr) as client,
        ):
            client.become_primary()
            client.set_config(pool_config(VALUES))
            job = PoolJob((SWITCH_ADDRESS, 17760), client, workers, VALUES)
            rng = np.random.default_rng(3)
            for seq in range(ROUNDS):
                parts = rng.integers(-(2**28), 2**28, (WORKERS, VALUES), np.int32)
                for rank in range(WORKERS):
                    job.send(rank, job.contribution(rank, seq, parts[rank]))
                for rank in range(WORKERS):
                    header, values = job.result(rank)
                    assert (header.seq, header.worker) == (seq, rank)
                    np.testing.assert_array_equal(values, parts.sum(axis=0))
            job.close()
            for stats in switch.stats().ports.values():
                assert stats.malformed_packets == stats.failed_packets == 0
