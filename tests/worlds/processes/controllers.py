"""Controllers in this process, with soft switches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from typing import Any

from ina.controller.app import ControllerApp
from ina.controller.config import Config, make_config
from ina.controller.embedded import Embedded
from ina.controller.job import Job, JobSpec
from ina.controller.jobs.coordinator import Coordinator
from ina.protocol.peer import Peer
from ina.trees.endpoint import Endpoint
from tests.worlds.fakes.workers import Workers, workers_of


def config(switch: str, store_url: str, election_id: int) -> Config:
    return make_config(
        {
            "listen": "127.0.0.1:0",
            "switch": {"grpc_addr": switch, "values": 64, "election_id": election_id},
            "store": {"url": store_url},
        },
        "test",
    )


def role(app: ControllerApp) -> str:
    assert app._supervisor is not None
    return app._supervisor.describe().role


def reaches(app: ControllerApp) -> bool:
    assert app._supervisor is not None
    return app._supervisor.unreachable is None


def coordinator(app: ControllerApp) -> Coordinator:
    assert app._supervisor is not None
    assert app._supervisor.term is not None
    return app._supervisor.term.coordinator


async def run_job(app: ControllerApp, name: str) -> Job:
    at = coordinator(app)
    await at.create(JobSpec(name, 2), 0.0)
    return (await asyncio.gather(*(at.join(name, r, endpoint(r), HANG_S) for r in range(2))))[0]


HANG_S = 60


async def until(true: Callable[[], bool]) -> None:
    async def poll() -> None:
        while not true():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(poll(), HANG_S)


def endpoint(rank: int) -> Endpoint:
    return Endpoint(Peer(IPv4Address("127.0.0.1"), 4000 + rank), 1)


@contextmanager
def controller(config: dict[str, dict[str, Any]]) -> Iterator[Workers]:
    with (
        Embedded(values=64, slots=4096, config=config) as embedded,
        workers_of(embedded.controller_addr) as workers,
    ):
        yield workers
