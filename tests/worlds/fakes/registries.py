"""A registry alone, and jobs in it that run at once."""

from __future__ import annotations

from ipaddress import IPv4Address

from ina.controller.job import Job, JobSpec
from ina.controller.jobs.numbers import EpochCounter
from ina.controller.jobs.registry import Registry
from ina.controller.memory import StaticPool
from ina.protocol.peer import Peer
from ina.trees.endpoint import Endpoint
from tests.worlds.fakes.switches import alone


def make_registry(*, slots: int = 64, job_slots: int = 16, numbers: int = 100) -> Registry:
    return Registry(alone(StaticPool(slots, job_slots)), EpochCounter(0), range(1, numbers + 1))


def endpoint(port: int) -> Endpoint:
    return Endpoint(Peer(IPv4Address("10.0.0.1"), port), 1)


def run_job(registry: Registry, name: str, world_size: int) -> Job:
    job = registry.create(JobSpec(name, world_size), 0.0)
    for rank in range(world_size):
        registry.join(name, rank, endpoint(1000 + rank))
    registry.place(job)
    registry.installed(job)
    return job
