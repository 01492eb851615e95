"""Stores of each kind for the tests of the controller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from ina.controller import retry
from ina.controller.jobs import removal
from ina.controller.service import arrivals, supervisor
from ina.controller.watch import failure_detector, leases
from tests.worlds.fakes.coordinator import Watched
from tests.worlds.processes import postgres
from tests.worlds.processes.postgres import PostgresServer

NewStore: TypeAlias = Callable[[Path], str]
"""Makes the URL of an empty store, by a folder for it."""


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Controllers of this process try a switch again at once, and soon miss who hangs up."""
    for module, first_s, most_s in ((supervisor, 0.01, 0.05), (retry, 0.001, 0.01)):
        monkeypatch.setattr(module, "FIRST_PAUSE_S", first_s)
        monkeypatch.setattr(module, "MAX_PAUSE_S", most_s)
    monkeypatch.setattr(leases, "BROKEN_S", 0.2)
    monkeypatch.setattr(removal, "LOOK_S", 0.02)
    monkeypatch.setattr(failure_detector, "CHECK_S", 0.02)
    monkeypatch.setattr(arrivals, "CHECK_S", 0.02)


@pytest.fixture
def bench() -> Watched:
    """A coordinator under a failure detector."""
    return Watched()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One for the whole session; each test has databases of its own."""
    with postgres.server() as server:
        yield server


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def new_store(request: pytest.FixtureRequest) -> NewStore:
    """The test runs with each kind of store."""
    if request.param == "sqlite":
        return lambda folder: f"sqlite:///{folder / 'store.db'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return lambda folder: server.new_url()


@pytest.fixture
def store_url(new_store: NewStore, tmp_path: Path) -> str:
    """An empty store of each kind."""
    return new_store(tmp_path)
