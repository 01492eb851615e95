"""`ina controller check` looks into the store, and changes nothing there."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ina.cli import main
from ina.controller.errors import FencedError
from ina.controller.store import open_store
from ina.controller.store.schema import VERSION
from tests.worlds.fakes.placed import job
from tests.worlds.processes.postgres import PostgresServer


def check(folder: Path, store_url: str, *options: str) -> int:
    file = folder / "controller.toml"
    file.write_text(f'[store]\nurl = "{store_url}"\n')
    return main.run(["controller", "check", str(file), *options])


@pytest.fixture
def says(capsys: pytest.CaptureFixture[str]) -> Any:
    """What was printed since: stdout behind `ok; `, or stderr."""

    def read() -> str:
        captured = capsys.readouterr()
        assert (captured.out + captured.err).count("\n") == 1
        return captured.out.partition("toml: ok; ")[2].strip() or captured.err.strip()

    return read


def test_it_says_what_a_controller_will_find(store_url: str, tmp_path: Path, says: Any) -> None:
    name = store_url.removeprefix("sqlite:///")
    assert check(tmp_path, store_url) == 0
    assert says() == f"store {name}: will be created"
    with closing(open_store(store_url)) as store:
        assert check(tmp_path, store_url) == 0
        assert says() == f"store {name}: schema {VERSION}, jobs 0, claimed by nobody"
        claim = store.claim("host process 7")
        claim.save(job())
        assert check(tmp_path, store_url) == 0
        assert f"schema {VERSION}, jobs 1, claimed by host process 7 at 20" in says()
        claim.check()  # it has not taken it
        claim = store.claim("host process 7", "10.0.0.254:17760")
        assert check(tmp_path, store_url) == 0
        assert says().endswith(" for the switch at 10.0.0.254:17760")
        second = store.claim("other")
        with pytest.raises(FencedError):
            claim.check()
        second.remove(job())


def test_in_memory_is_said(tmp_path: Path, says: Any) -> None:
    assert check(tmp_path, "") == 0
    assert says() == "store in memory: lost with the process"


def test_json_has_the_report_and_no_password(
    store_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    open_store(store_url).close()
    with_secret = store_url.replace("ina@", "ina:secret@")
    assert check(tmp_path, with_secret, "--json") == 0
    said = capsys.readouterr().out
    assert "secret" not in said
    store = json.loads(said)["store"]
    assert (store["version"], store["jobs"]) == (VERSION, 0)


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("PRAGMA user_version = 1", f"its schema is 1, and this ina's is {VERSION}: "),
        ("PRAGMA user_version = 99", f"its schema is 99, and this ina's is {VERSION}: "),
        ("PRAGMA application_id = 1", "this SQLite file belongs to another program"),
    ],
)
def test_a_file_that_a_controller_would_refuse(
    statement: str, problem: str, tmp_path: Path, says: Any
) -> None:
    path = tmp_path / "s.db"
    open_store(f"sqlite:///{path}").close()
    with sqlite3.connect(path) as db:
        db.execute(statement)
    assert check(tmp_path, f"sqlite:///{path}") == 2
    assert f"error: store {path}: {problem}" in says()


def test_a_file_or_folder_that_this_user_may_not_write(tmp_path: Path, says: Any) -> None:
    path = tmp_path / "d" / "s.db"
    assert check(tmp_path, f"sqlite:///{path}") == 2
    assert says() == f"error: store {path}: there is no folder {path.parent}"
    path.parent.mkdir()
    open_store(f"sqlite:///{path}").close()
    path.chmod(0o400)
    for each in [tmp_path, *tmp_path.parents]:
        if each.stat().st_uid == os.getuid() and each != Path("/tmp"):
            each.chmod(each.stat().st_mode | 0o055)
    uid = os.geteuid()
    os.seteuid(uid or 65534)  # root may write everything
    try:
        code = main.run(["controller", "check", str(tmp_path / "controller.toml")])
    finally:
        os.seteuid(uid)
    assert code == 2
    assert f"error: store {path}: Permission denied" in says()
    beside = path.with_name("new.db")
    (tmp_path / "controller.toml").write_text(f'[store]\npath = "{beside}"\n')
    path.parent.chmod(0o555)
    os.seteuid(uid or 65534)
    try:
        assert main.run(["controller", "check", str(tmp_path / "controller.toml")]) == 2
    finally:
        os.seteuid(uid)
        path.parent.chmod(0o755)
    assert f"error: store {beside}: this user may not create it" in says()


TO_READ = [
    "GRANT USAGE ON SCHEMA ina TO {user}",
    "GRANT SELECT ON ALL TABLES IN SCHEMA ina TO {user}",
    "GRANT UPDATE ON ina.claim TO {user}",
]


@pytest.mark.parametrize(
    ("exists", "granted", "problem"),
    [
        (False, [], "this user has no right to create tables in its database"),
        (True, TO_READ[:0], "permission denied for schema ina"),
        (True, TO_READ, "this user has no right to INSERT in the table claim"),
    ],
)
def test_rights_that_lack_in_a_database(
    exists: bool,
    granted: list[str],
    problem: str,
    postgres_server: PostgresServer,
    tmp_path: Path,
    says: Any,
) -> None:
    url = postgres_server.new_url()
    user = f"reader_of_{url.rpartition('/')[2]}"
    postgres_server.run(url, f"CREATE ROLE {user} LOGIN")
    if exists:
        open_store(url).close()
    for statement in granted:
        postgres_server.run(url, statement.format(user=user))
    other = url.replace("//ina@", f"//{user}@")
    assert check(tmp_path, other) == 2
    assert f"error: store {other}: {problem}" in says()


@pytest.mark.parametrize(
    ("store", "problem"),
    [
        ('url = "mysql://h/d"', "store.url: 'mysql://h/d': want sqlite:///PATH or postgresql://"),
        ('url = "sqlite:///"', "store.url: sqlite:/// names no file"),
        ('url = "sqlite:///a"\npath = "b"', "store: url and path are two places: name one"),
        ('url = "sqlite:///a"\nurl_ = "b"', "store.url_: unknown key"),
    ],
)
def test_a_place_that_cannot_be(store: str, problem: str, tmp_path: Path, says: Any) -> None:
    file = tmp_path / "c.toml"
    file.write_text(f"[store]\n{store}\n")
    assert main.run(["controller", "check", str(file)]) == 2
    assert f"error: {file}: {problem}" in says()
