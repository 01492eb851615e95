"""A PostgreSQL server of the test session's own: Debian's, on a port and in a folder of its own."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

START_S = 60
STOP_S = 30
USER = "ina"
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",  # the machine does not lose power
    "max_connections": "50",
    "shared_buffers": "16MB",
    "log_timezone": "UTC",
    "autovacuum": "off",
}


class PostgresServer:
    """``initdb``, ``pg_ctl`` and a folder; may be stopped and started again."""

    def __init__(self, tools: Path, folder: Path, owner: dict[str, Any]) -> None:
        self._tools = tools
        self._data = folder / "data"
        self._log = folder / "log"
        self._owner = owner  # of its processes: a server refuses to be root's
        self._names = (f"store{n}" for n in itertools.count(1))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        settings = {**SETTINGS, "port": str(self.port), "unix_socket_directories": str(folder)}
        self._run("initdb", "-U", USER, "-A", "trust", "-E", "UTF8", "--no-sync", "-D")
        with (self._data / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def start(self) -> None:
        """Returns when it accepts connections."""
        self._run("pg_ctl", "start", "-w", "-t", str(START_S), "-l", str(self._log), "-D")

    def stop(self, mode: str = "immediate") -> None:
        """Ends it and all its connections."""
        self._run("pg_ctl", "stop", "-w", "-t", str(STOP_S), "-m", mode, "-D")

    @property
    def is_up(self) -> bool:
        """Whether the server process is there."""
        return (self._data / "postmaster.pid").exists()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Meanwhile all its processes are stopped, as on a host that hangs."""
        pids = [int((self._data / "postmaster.pid").read_text().split()[0])]
        tasks = Path(f"/proc/{pids[0]}/task/{pids[0]}/children")
        pids += map(int, tasks.read_text().split())
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def new_url(self) -> str:
        """Of a new, empty database."""
        import psycopg

        name = next(self._names)
        url = f"postgresql://{USER}@127.0.0.1:{self.port}"
        with psycopg.connect(f"{url}/postgres", autocommit=True, connect_timeout=START_S) as db:
            db.execute(f"CREATE DATABASE {name}".encode())
        return f"{url}/{name}"

    @staticmethod
    def run(url: str, statement: str) -> list[Any]:
        """What an administrator of the server does."""
        import psycopg

        with psycopg.connect(url, autocommit=True, connect_timeout=START_S) as db:
            done = db.execute(statement.encode())
            return done.fetchall() if done.description else []

    def _run(self, tool: str, *arguments: str) -> None:
        command = [str(self._tools / tool), *arguments, str(self._data)]
        # Not into pipes: the server would keep them open.
        with tempfile.TemporaryFile("w+") as said:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd="/",
                timeout=START_S + STOP_S, env={**os.environ, "LC_ALL": "C"}, **self._owner,
            )  # fmt: skip
            said.seek(0)
            assert done.returncode == 0, said.read()


@contextmanager
def server() -> Iterator[PostgresServer]:
    """Skips where there is none that can be started here."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'psycopg[binary]'")
    tools = find_tools()
    if tools is None:
        pytest.skip("needs PostgreSQL's initdb and pg_ctl: apt-get install postgresql")
    owner: dict[str, Any] = {}
    folder = Path(tempfile.mkdtemp(prefix="ina-postgres-"))
    try:
        if os.geteuid() == 0:
            entry = _somebody()
            os.chown(folder, entry.pw_uid, entry.pw_gid)
            owner = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        running = PostgresServer(tools, folder, owner)
        running.start()
        try:
            yield running
        finally:
            if running.is_up:
                running.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def find_tools() -> Path | None:
    """The folder of ``initdb`` and ``pg_ctl``: Debian's is not on PATH. The newest version's."""
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    places = sorted(versions, key=lambda path: float(path.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    places += [Path(on_path).parent] if on_path else []
    return next((p for p in places if (p / "initdb").exists() and (p / "pg_ctl").exists()), None)


def _somebody() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    pytest.skip("root cannot run PostgreSQL, and there is no user postgres or nobody")
