"""A switch that answers slowly, or not at all, while its controller goes on with the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from ina.controller.config import Config, SwitchConfig, make_config
from ina.controller.service import supervisor
from ina.controller.service.supervisor import Supervisor
from ina.controller.store import IN_MEMORY, open_store
from ina.tables.errors import SwitchError
from ina.tables.session import SwitchSession
from tests.worlds.fakes.sessions import SlowSession


class Session(SlowSession):
    """Of a switch that this controller is primary of, until the connection breaks."""

    address, device_id, election_id, heard_s = "s:9559", 1, 1, 0.0
    is_primary = True

    def __init__(self) -> None:
        super().__init__()
        self.connected()

    def connected(self) -> None:
        self.lost = False
        self.broken = asyncio.Event()

    def breaks(self) -> None:
        self.lost = True
        self.broken.set()

    def who_is_primary(self) -> str:
        return "this one is"

    async def close(self) -> None:
        pass

    async def until_backup(self) -> None:
        await self.broken.wait()
        raise SwitchError("its connection broke")

    async def set_pipeline(self) -> bool:
        await self._some(())
        return False


class Wire:
    """How the supervisor connects; ``asked`` counts."""

    def __init__(self) -> None:
        self.sessions = {"slow": Session(), "quick": Session()}
        self.asked = dict.fromkeys(self.sessions, 0)

    async def connect(
        self, config: Config, switch: SwitchConfig, *, standby: bool
    ) -> SwitchSession:
        self.asked[switch.name] += 1
        self.sessions[switch.name].connected()
        return cast(SwitchSession, self.sessions[switch.name])


CONFIG = make_config(
    {
        "switch": [
            {"name": name, "grpc_addr": f"{name}:9559", "data_host": f"10.0.0.{number}"}
            for number, name in enumerate(("slow", "quick"), 1)
        ]
    },
    "test",
)


async def until(supervisor: Supervisor, name: str, asked: int, wire: Wire) -> None:
    """Connected for the so many-th time, and as the store wants it."""
    while wire.asked[name] < asked or not supervisor.links[name].agrees:
        await asyncio.sleep(0)


@asynccontextmanager
async def slow_hangs_while_compared() -> AsyncIterator[tuple[Wire, Supervisor]]:
    """Switch slow broke, was connected anew, and does not answer the comparison."""
    wire = Wire()
    running = Supervisor(CONFIG, open_store(IN_MEMORY), connect=wire.connect)
    await running.start()
    try:
        slow = wire.sessions["slow"]
        slow.gate.clear()
        slow.breaks()
        while wire.asked["slow"] < 2:
            await asyncio.sleep(0)
        yield wire, running
    finally:
        await running.close()


async def test_one_that_hangs_while_it_is_compared_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE_S", 0.001)

    async with slow_hangs_while_compared() as (wire, running):
        assert running.term is not None
        for times in (2, 3):
            wire.sessions["quick"].breaks()
            await until(running, "quick", times, wire)
            assert not running.links["slow"].agrees
        assert running.term.switches["quick"].capacity.is_reached()
        assert not running.term.switches["slow"].capacity.is_reached()
        wire.sessions["slow"].gate.set()
        await until(running, "slow", 2, wire)


async def test_one_that_breaks_again_while_it_is_compared_is_connected_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE_S", 0.001)

    async with slow_hangs_while_compared() as (wire, running):
        slow = wire.sessions["slow"]
        slow.breaks()
        slow.gate.set()
        await until(running, "slow", 3, wire)
        assert running.links["slow"].unreachable is None
