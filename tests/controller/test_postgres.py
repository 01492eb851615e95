"""A store on a PostgreSQL server that restarts, hangs, refuses, or belongs to somebody else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest

from ina.controller.app import ControllerApp
from ina.controller.errors import FencedError, StoreError
from ina.controller.job import JobSpec, JobState
from ina.controller.store import Claim, Store, open_store, postgres
from ina.controller.store.schema import VERSION
from ina.errors import MissingToolError
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from tests.worlds.fakes.placed import job
from tests.worlds.processes.controllers import config, coordinator, role, run_job, until
from tests.worlds.processes.postgres import PostgresServer

pytestmark = pytest.mark.usefixtures("quick_retries")


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return postgres_server.new_url()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(open_store(url)) as opened:
        yield opened


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadlines are what is tested, not how long they are."""
    monkeypatch.setattr(postgres, "TRANSACTION_S", 1.0)
    monkeypatch.setattr(postgres, "_SETTINGS", tuple(s.replace("4s", "300ms") for s in SETTINGS))


SETTINGS = postgres._SETTINGS
KILL_THE_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


run = PostgresServer.run


def test_controllers_that_start_at_once_make_one_schema(url: str) -> None:
    with ThreadPoolExecutor() as pool:
        stores = list(pool.map(open_store, [url] * 4))
    assert run(url, "SELECT version FROM ina.schema_version") == [(VERSION,)]
    assert [each.load(0.0) for each in stores] == [[]] * 4
    for each in stores:
        each.close()


@pytest.mark.parametrize(
    ("statements", "says"),
    [
        (["UPDATE ina.schema_version SET version = 99"], "its schema is 99, and this ina"),
        (
            ["DROP SCHEMA ina CASCADE", "CREATE SCHEMA ina", "CREATE TABLE ina.claim (what text)"],
            "its schema ina belongs to another program",
        ),
    ],
)
def test_a_schema_that_cannot_be_used_is_left_alone(
    url: str, statements: list[str], says: str
) -> None:
    open_store(url).close()
    for statement in statements:
        run(url, statement)
    with pytest.raises(StoreError, match=rf"store postgresql://\S+: {says}") as caught:
        open_store(url)
    assert "\n" not in str(caught.value)


def test_a_schema_that_an_administrator_made_is_used_by_who_may_not_make_one(url: str) -> None:
    name = url.rpartition("/")[2]
    run(url, "CREATE SCHEMA ina")
    run(url, f"CREATE ROLE user_of_{name} LOGIN")
    run(url, f"GRANT USAGE, CREATE ON SCHEMA ina TO user_of_{name}")
    with closing(open_store(url.replace("ina@", f"user_of_{name}@"))) as store:
        store.claim("test").save(job())


def test_without_psycopg_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingToolError, match=r"pip install 'psycopg\[binary\]'") as caught:
        open_store("postgresql://ina:secret@127.0.0.1:1/x?password=secret")
    assert "secret" not in str(caught.value)


def test_nobody_there_is_one_line_without_the_password() -> None:
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'psycopg[binary]'")
    with pytest.raises(StoreError, match=r"store postgresql://ina@127\.0\.0\.1:1/x: ") as caught:
        open_store("postgresql://ina:secret@127.0.0.1:1/x?password=secret")
    assert "refused" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_lost_connection_fails_once_and_is_made_anew(store: Store, url: str) -> None:
    claim = store.claim("test")
    claim.save(job())
    run(url, KILL_THE_OTHERS)
    with pytest.raises(StoreError, match="terminat"):
        claim.check()
    claim.save(job(state=JobState.LEAVING))
    assert [item.job.state for item in store.load(0.0)] == [JobState.LEAVING]


def test_a_connection_without_its_settings_is_not_used(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as refused:
        refused.setattr(postgres, "_SETTINGS", ("SET no_such_setting = 1",))
        with pytest.raises(StoreError, match="no_such_setting"):
            store.claim("test")
    with store.transaction() as (db, _):
        assert db.execute("SHOW lock_timeout").fetchone() == (f"{postgres.STATEMENT_S}s",)


def test_a_server_that_restarts_has_all_that_was_saved(
    postgres_server: PostgresServer, store: Store
) -> None:
    claim = store.claim("test")
    claim.save(job(), last_epoch=7)
    postgres_server.stop()
    with pytest.raises(StoreError):
        claim.check()
    with pytest.raises(StoreError, match="refused"):
        claim.check()
    postgres_server.start()
    assert (store.last_epoch(), [item.job.name for item in store.load(0.0)]) == (7, ["j"])
    claim.check()


def test_a_server_that_hangs_is_hung_up_on(
    postgres_server: PostgresServer, impatient: None, url: str
) -> None:
    with closing(open_store(url)) as store:
        claim = store.claim("test")
        with postgres_server.frozen(), pytest.raises(StoreError, match="no answer within 1 s"):
            claim.save(job())
        claim.check()


def test_who_stopped_within_a_change_does_not_keep_the_claim(
    impatient: None, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a controller does whose machine is suspended: its own deadline does not end that."""
    monkeypatch.setattr(postgres, "TRANSACTION_S", 3600.0)
    with closing(open_store(url)) as stopped, closing(open_store(url)) as other:
        former = stopped.claim("former")
        latter: list[Claim] = []

        def stop_within_a_change() -> None:
            with stopped.transaction() as (db, _):
                db.execute("UPDATE claim SET holder = 'nobody'")
                while not latter:  # refused while it has the lock; the server ends that
                    with suppress(StoreError):
                        latter.append(other.claim("latter"))
                db.execute("UPDATE claim SET generation = 1")

        with pytest.raises(StoreError, match="store postgresql://"):
            stop_within_a_change()
        latter[0].save(job())
        with pytest.raises(FencedError, match="latter has claimed it"):
            former.save(job(2, "late"))
        assert [item.job.name for item in other.load(0.0)] == ["j"]


async def test_a_primary_that_loses_its_store_stands_by_until_it_is_back(
    postgres_server: PostgresServer, url: str
) -> None:
    with SoftSwitch([UdpPort(1)]) as switch:
        async with ControllerApp(config(switch.grpc_addr, url, 1)) as app:
            epoch = (await run_job(app, "a")).epoch
            postgres_server.stop()
            with pytest.raises(StoreError):
                await coordinator(app).create(JobSpec("late", 2), 0.0)
            await until(lambda: role(app) == "standby")
            postgres_server.start()
            await until(lambda: role(app) == "primary")
            assert [each.name for each in coordinator(app).jobs()] == ["a"]
            assert (await run_job(app, "b")).epoch == epoch + 1
