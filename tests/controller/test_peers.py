"""Controllers of one store that are configured otherwise say so, on both sides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ina.cli import main
from ina.controller.app import ControllerApp
from ina.controller.config import Config, make_config
from ina.controller.config.reload import differences, digests
from ina.controller.service.metrics import Snapshot, _controller_families
from ina.controller.surroundings import Surroundings
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from tests.controller.proxy import Proxy
from tests.worlds.processes.controllers import role, until

Log = pytest.LogCaptureFixture
SURROUNDINGS = "ina.controller.service.supervisor.Surroundings"
TENANTS = {"vision": {"slots": 1024}, "speech": {"jobs": 2}}


def make(**keys: Any) -> Config:
    return make_config(keys, "test")


@pytest.mark.parametrize(
    ("one", "other", "keys"),
    [
        ({}, {}, []),
        # What each has for itself.
        (
            {"listen": "127.0.0.1:0", "switch": {"election_id": 2}, "store": {"path": "a"}},
            {"metrics": "127.0.0.1:0", "switch": {"grpc_addr": "10.0.0.1:9559"}},
            [],
        ),
        ({"tenants": {"a": {"slots": 4}}}, {"tenants": {"a": {"slots": 8}}}, ["tenants.a.slots"]),
        ({"tenants": {"a": {}}}, {"tenants": {"a": {}, "b": {}}}, ["tenants.b"]),
        ({"tenants": {"a": {}}}, {}, ["tenants"]),
        ({"jobs": {"preempt": True}}, {"jobs": {"count": 4}}, ["jobs.count", "jobs.preempt"]),
        ({"switch": {"values": 64}}, {}, ["switch.values"]),
        ({"job": [{"name": "a", "weight": 2}]}, {}, ["job"]),
        ({"windows": {"slack": 3}}, {}, ["windows.slack"]),
    ],
)
def test_what_differs_is_named(one: dict[str, Any], other: dict[str, Any], keys: list[str]) -> None:
    found = digests(make(**one)), digests(make(**other))
    assert differences(*found) == differences(*reversed(found)) == keys


def config(switch: str, store: Path, election_id: int, tenants: dict[str, Any]) -> Config:
    return make(
        listen="127.0.0.1:0",
        switch={"grpc_addr": switch, "values": 64, "election_id": election_id},
        store={"path": str(store)},
        tenants=tenants,
    )


@asynccontextmanager
async def pair(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[ControllerApp, ControllerApp, Proxy]]:
    """A primary that reaches the switch through a proxy, and a standby with an older file."""
    names = iter(("node1 process 7", "node2 process 9"))
    monkeypatch.setattr(
        "ina.controller.service.supervisor.Surroundings", lambda: Surroundings(name=next(names))
    )
    older = {"vision": {"slots": 512}, "speech": {"jobs": 2}}
    with SoftSwitch([UdpPort(1)]) as switch:
        async with (
            Proxy(switch.grpc_addr) as proxy,
            ControllerApp(config(proxy.address, store, 5, TENANTS)) as first,
            ControllerApp(config(switch.grpc_addr, store, 3, older)) as second,
        ):
            assert (role(first), role(second)) == ("primary", "standby")
            yield first, second, proxy


async def look(*apps: ControllerApp) -> None:
    """Twice, so that each has heard of all."""
    for app in (*apps, *apps):
        assert app._peers is not None
        await app._peers.look()


def differing(app: ControllerApp) -> list[tuple[str, list[str]]]:
    assert app._supervisor is not None
    return [(it.controller, list(it.keys)) for it in app._supervisor.describe().differs]


def warnings(caplog: Log) -> list[str]:
    said = (it.getMessage() for it in caplog.records if it.levelname == "WARNING")
    return [it for it in said if "configur" in it]


def test_both_sides_say_so_until_they_are_alike(
    tmp_path: Path, caplog: Log, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run() -> None:
        async with pair(tmp_path / "c.db", monkeypatch) as (first, second, _):
            await look(first, second)
            assert differing(first) == [("node2 process 9", ["tenants.vision.slots"])]
            assert differing(second) == [("node1 process 7", ["tenants.vision.slots"])]
            assert [it.split(" is ")[0] for it in sorted(set(warnings(caplog)))] == [
                "node1 process 7",
                "node2 process 9",
            ]
            assert len(warnings(caplog)) == 2  # told once each
            await shown(first, second)
            counted = {
                family.name: family.samples[0].value
                for family in _controller_families(Snapshot(first._supervisor.describe(), []))  # type: ignore[union-attr]
                if family.samples
            }
            assert counted["ina_controller_config_differs"] == 1
            second.reload(config("127.0.0.1:1", tmp_path / "c.db", 3, TENANTS))
            await look(first, second)
            assert differing(first) == differing(second) == []
            assert len(warnings(caplog)) == 2

    async def shown(*apps: ControllerApp) -> None:
        addresses = ",".join(app.listen_addr for app in apps)
        words = ["controller", "status", "--controller", addresses]
        assert await asyncio.to_thread(main.run, words) == 0

    asyncio.run(run())
    out = capsys.readouterr().out
    assert "node2 process 9 is configured otherwise: tenants.vision.slots" in out
    assert "node1 process 7 is configured otherwise: tenants.vision.slots" in out


async def test_who_takes_over_says_what_holds_now(
    tmp_path: Path, caplog: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pair(tmp_path / "c.db", monkeypatch) as (first, second, proxy):
        await look(first, second)
        caplog.clear()
        proxy.cut()
        await until(lambda: role(second) == "primary")
        await look(second)
        assert warnings(caplog) == [
            "took over from node1 process 7 with another configuration: tenants.vision.slots;"
            " from now on what this controller's file says of it holds"
        ]
        await look(second)
        assert len(warnings(caplog)) == 1  # once


def test_a_controller_alone_that_starts_with_another_file_is_nobody_else(
    tmp_path: Path, caplog: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(name: str, tenants: dict[str, Any]) -> None:
        monkeypatch.setattr(
            "ina.controller.service.supervisor.Surroundings", lambda: Surroundings(name=name)
        )
        with SoftSwitch([UdpPort(1)]) as switch:
            async with ControllerApp(
                config(switch.grpc_addr, tmp_path / "c.db", 1, tenants)
            ) as app:
                await look(app)
                assert differing(app) == []

    asyncio.run(run("node1 process 7", TENANTS))
    asyncio.run(run("node1 process 8", {}))
    assert warnings(caplog) == []
