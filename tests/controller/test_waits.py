"""Waits of the controller that end although a switch, a store or itself does not answer."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Any

import grpc
import pytest

from ina.controller import embedded
from ina.controller.app import ControllerApp
from ina.controller.config import make_config
from ina.controller.embedded import Embedded
from ina.controller.errors import StoreError
from ina.controller.service import workers as service
from ina.controller.store import postgres, sqlite
from ina.controller.store.postgres import PostgresDatabase
from ina.controller.store.sqlite import SqliteDatabase
from ina.rpc import controller_pb2 as pb2
from ina.rpc.controller_pb2_grpc import OperatorStub
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from ina.tables import grpc_wire
from ina.tables.errors import SwitchError
from tests.worlds.fakes.workers import workers_of
from tests.worlds.processes.silence import DEADLINE_S, silent_server, stuck_thread


def test_a_store_that_another_process_has_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "LOCK_TIMEOUT_S", 0.05)
    file = tmp_path / "jobs.db"
    database = SqliteDatabase(str(file))
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(StoreError, match="locked"), database.transaction():
            pass
    finally:
        other.close()
        database.close()


def test_a_database_server_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    assert postgres._CONNECTION["connect_timeout"] == postgres.CONNECT_S
    monkeypatch.setitem(postgres._CONNECTION, "connect_timeout", 2)  # libpq's least
    with silent_server() as address, pytest.raises(StoreError, match="timeout"):
        PostgresDatabase(f"postgresql://nobody@{address}/jobs")


def test_a_switch_that_takes_a_program_and_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grpc_wire, "PIPELINE_TIMEOUT_S", 0.2)
    release = threading.Event()
    monkeypatch.setattr(SoftSwitch, "_install", lambda self, pipeline: release.wait(DEADLINE_S))

    async def start(grpc_addr: str) -> None:
        settings = {"listen": "127.0.0.1:0", "switch": {"grpc_addr": grpc_addr, "values": 64}}
        async with ControllerApp(make_config(settings, "test")):
            pass

    with SoftSwitch([UdpPort(1)]) as switch:
        try:
            with pytest.raises(SwitchError, match=r"(?i)deadline\b"):
                asyncio.run(start(switch.grpc_addr))
        finally:
            release.set()


def test_who_still_watches_does_not_keep_a_controller_from_its_end() -> None:
    with Embedded(values=64) as running, grpc.insecure_channel(running.controller_addr) as channel:
        stream: Any = OperatorStub(channel).WatchJobs(pb2.WatchJobsRequest())
        stream.initial_metadata()
        running.close()
        assert list(stream) == []


def test_a_former_job_whose_switch_is_away_is_waited_for_by_who_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has no workers any more; only the switch keeps it, and its name, from its end."""
    monkeypatch.setattr(service, "FORMER_JOB_WAIT_S", 0.2)
    lease = {"jobs": {"lease_s": 1.0}}
    with (
        Embedded(values=64, slots=64, config=lease) as running,
        workers_of(running.controller_addr) as workers,
    ):
        epoch = workers.run_job("j", 1).epoch
        running.switch.stop()
        with pytest.raises(grpc.RpcError):  # its entries cannot be taken off
            workers.leave("j", 0, epoch)
        with pytest.raises(grpc.RpcError) as caught:
            workers.create("j", 1)
    error: Any = caught.value
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert "'j' is in use: it is leaving" in error.details()
    assert "its entries are still on switch 'switch'" in error.details()


def test_an_embedded_controller_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "_START_TIMEOUT_S", 0.05)
    monkeypatch.setattr(embedded, "_STOP_TIMEOUT_S", 0.05)
    release = threading.Event()
    monkeypatch.setattr(Embedded, "_run", lambda self, app: release.wait(DEADLINE_S))
    try:
        with pytest.raises(SwitchError, match=r"did not start in 0.05 s"), Embedded(values=64):
            pass
    finally:
        release.set()


def test_an_embedded_controller_that_does_not_answer_or_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedded, "_SHOW_TIMEOUT_S", 0.05)
    monkeypatch.setattr(embedded, "_STOP_TIMEOUT_S", 0.05)

    async def show(self: object) -> Any:
        await asyncio.sleep(DEADLINE_S)

    running = Embedded(values=64)
    with running:
        with monkeypatch.context() as patch:
            patch.setattr(ControllerApp, "show", show)
            with pytest.raises(SwitchError, match=r"did not answer in 0.05 s"):
                running.show()
        own = running._thread
        assert own is not None
        with stuck_thread() as stuck:
            running._thread = stuck
            running.close()
        own.join(DEADLINE_S)
