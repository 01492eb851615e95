"""Jobs of a test: one worker a host, or several ranks of a torch group."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bmv2_tests.network import Network
from bmv2_tests.plans import HostPlace
from bmv2_tests.process import PYTHON, NodeProcess
from tests.worlds.processes.worker import Plan

DEADLINE_S = 150.0
MASTER_PORT = 29500


def plan_of(
    name: str,
    hosts: int,
    steps: int,
    elems: int,
    *,
    seed: int = 1,
    pause_s: float = 0.0,
    held: tuple[int, Path] | None = None,
) -> Plan:
    """Integers and floats in turn, each time a little more than before.

    ``held``: before this step the workers wait for this file, so that the job is still there when
    the test has looked at it.
    """
    return Plan(
        name=name,
        world_size=hosts,
        seed=seed,
        elems=tuple(elems + 61 * step for step in range(steps)),
        floats=tuple(step % 2 == 1 for step in range(steps)),
        pause_s=pause_s,
        held=held and (held[0], str(held[1])),
    )


@dataclass(frozen=True)
class Job:
    """Workers that run, by rank."""

    workers: tuple[NodeProcess, ...]

    def finish(self, deadline_s: float = DEADLINE_S) -> list[dict[str, Any]]:
        """Waits for the end; every sum was right, with the same bits everywhere. Returns stats."""
        return [end["stats"] for end in self._ends(deadline_s)]

    def later(self, name: str, deadline_s: float = DEADLINE_S) -> list[int]:
        """As :meth:`finish`; by how much a count of each rank grew after the first second."""
        return [end["stats"][name] - end["early"][name] for end in self._ends(deadline_s)]

    def digest(self, deadline_s: float = DEADLINE_S) -> str:
        """As :meth:`finish`; a hash of all results."""
        digest: str = self._ends(deadline_s)[0]["sha256"]
        return digest

    def _ends(self, deadline_s: float) -> list[dict[str, Any]]:
        codes = [worker.wait(deadline_s) for worker in self.workers]
        assert codes == [0] * len(codes), "\n".join(worker.text() for worker in self.workers)
        ends = [json.loads(worker.text().splitlines()[-1]) for worker in self.workers]
        assert len({end["sha256"] for end in ends}) == 1
        return ends


def start(
    network: Network, plan: Plan, hosts: Sequence[HostPlace] | None = None, log: str = ""
) -> Job:
    """Starts a worker on each of these hosts (all, if None), rank by rank."""
    places = network.plan.hosts if hosts is None else hosts
    assert len(places) == plan.world_size
    return Job(
        tuple(
            network.run(
                network.node(place),
                [*PYTHON, "bmv2_tests.worker", network.controller, str(rank), plan.dump()],
                f"{plan.name}{log}-{place.name}",
            )
            for rank, place in enumerate(places)
        )
    )


def torch_environ(network: Network, places: Sequence[HostPlace], rank: int) -> dict[str, str]:
    """As torchrun would set it, for a rank of those at these places, rank by rank.

    The rendezvous is on the control network, the gradients are not.
    """
    on_this_host = [it for it, place in enumerate(places) if place == places[rank]]
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(on_this_host.index(rank)),
        "LOCAL_WORLD_SIZE": str(len(on_this_host)),
        "WORLD_SIZE": str(len(places)),
        "MASTER_ADDR": places[0].control_address,
        "MASTER_PORT": str(MASTER_PORT),
        "GLOO_SOCKET_IFNAME": "eth1",
        "INA_CONTROLLER": network.controller,
        "INA_HOST": places[rank].address,
        "OMP_NUM_THREADS": "1",
    }


def start_torch(network: Network, plan: Plan, places: Sequence[HostPlace]) -> Job:
    """Starts a rank of a torch group at each of these places, several at a host if it is named
    several times."""
    assert len(places) == plan.world_size
    return Job(
        tuple(
            network.run(
                network.node(place),
                [*PYTHON, "bmv2_tests.torch_worker", plan.dump()],
                f"{plan.name}-rank{rank}-{place.name}",
                torch_environ(network, places, rank) | {"INA_JOB": plan.name},
            )
            for rank, place in enumerate(places)
        )
    )
