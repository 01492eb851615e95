"""A store that fails under a primary: one line says so, and one that it is over."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from ina.controller.app import ControllerApp
from ina.controller.errors import StoreError
from ina.controller.job import JobSpec
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.service import supervisor
from ina.controller.store import Claim, Store
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from tests.worlds.loops import drive
from tests.worlds.processes.controllers import config, coordinator, role, run_job, until

pytestmark = pytest.mark.usefixtures("quick_retries")


async def call(at: Coordinator) -> None:
    await at.create(JobSpec("late", 2), 0.0)


async def end_in_the_background(at: Coordinator) -> None:
    for rank in range(2):
        await at.leave("j", rank, 1)


async def die(at: Coordinator) -> None:
    """The workers' leases end by themselves."""


@pytest.mark.parametrize(
    ("of", "method", "needs_it"),
    [
        (Store, "transaction", call),
        (Claim, "remove", end_in_the_background),
        (Store, "transaction", die),
    ],
)
def test_it_is_said_once_whoever_needs_the_store(
    of: type,
    method: str,
    needs_it: Any,
    store_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(supervisor, "MAX_PAUSE_S", 0.05)

    def fail(*_: object) -> None:
        raise StoreError("store s: disk I/O error")

    async def scenario() -> None:
        with SoftSwitch([UdpPort(1)]) as switch:
            settings = config(switch.grpc_addr, store_url, 1)
            jobs = msgspec.structs.replace(settings.jobs, lease_s=0.3)
            async with ControllerApp(msgspec.structs.replace(settings, jobs=jobs)) as app:
                await run_job(app, "j")
                with monkeypatch.context() as failing:
                    failing.setattr(of, method, fail)
                    with suppress(StoreError):
                        await needs_it(coordinator(app))
                    await until(lambda: role(app) == "standby")
                await until(lambda: role(app) == "primary")

    with caplog.at_level(logging.INFO):
        drive(scenario())
    told = [
        (record.levelname, record.getMessage().partition(" switch ")[0])
        for record in caplog.records
        if "disk I/O" in record.getMessage() or "primary of" in record.getMessage()
    ]
    assert told == [
        ("INFO", "primary of"),
        ("ERROR", "standby: store s: disk I/O error"),
        ("WARNING", "primary of"),
    ]
