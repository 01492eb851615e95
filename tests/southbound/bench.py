"""What the tests of BFRuntime share: configurations, jobs, waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address
from typing import Any

from ina.controller.config import Config, make_config
from ina.controller.job import Job
from ina.controller.switches.southbound.tofino import TofinoSession
from ina.protocol.peer import Peer
from ina.trees.endpoint import Endpoint
from ina.trees.slots import SlotRange
from tests.worlds.fakes.switches import job_at
from tests.worlds.fakes.tofino import FakeTofino

HANG_S = 120


async def until(true: Callable[[], bool]) -> None:
    async def poll() -> None:
        while not true():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(poll(), HANG_S)


def config_for(
    tofino: FakeTofino,
    switch: Mapping[str, Any] | None = None,
    **others: Any,
) -> Config:
    """``switch``: more keys of that table."""
    table = {"target": "tofino", "southbound": "bfrt", "grpc_addr": tofino.address}
    document = {"listen": "127.0.0.1:0", "switch": {**table, **(switch or {})}, **others}
    return make_config(document, "test")


async def connect(config: Config, *, standby: bool = False) -> TofinoSession:
    """To the configuration's only switch."""
    return await TofinoSession.of_config(config, config.switch, standby=standby)


def two_workers(epoch: int, ports: tuple[int, int] = (1, 2)) -> Job:
    job = job_at("j", 7, 2, SlotRange(0, 64, 64), 0.0, epoch=epoch)
    for rank, port in enumerate(ports):
        job.members[rank] = Endpoint(Peer(IPv4Address("10.0.0.1"), 4000 + rank), port)
    return job
