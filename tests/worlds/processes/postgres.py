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
import time
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
    """A server process and its folder; may be stopped and started again."""

    def __init__(self, tools: Path, folder: Path, owner: dict[str, Any]) -> None:
        self._tools = tools
        self._data = folder / "data"
        self._owner = owner  # of its processes: a server refuses to be root's
        self._process: subprocess.Popen[bytes] | None = None
        self._names = (f"store{n}" for n in itertools.count(1))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._url = f"postgresql://{USER}@127.0.0.1:{self.port}"
        settings = {**SETTINGS, "port": str(self.port), "unix_socket_directories": str(folder)}
        self._initialise()
        with (self._data / "postgresql.conf").open("a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    def start(self) -> None:
        """Returns when it accepts connections. Not in a thread: the server ends with it."""
        # It must not outlive the tests, however they end; the kernel means the thread, though.
        keeper = ["setpriv", "--pdeathsig", "QUIT"] if shutil.which("setpriv") else []
        with (self._data.parent / "log").open("a") as log:
            self._process = subprocess.Popen(
                [*keeper, str(self._tools / "postgres"), "-D", str(self._data)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", **self._owner,
            )  # fmt: skip
        import psycopg

        deadline_s = time.monotonic() + START_S
        while True:
            try:
                self.run(f"{self._url}/postgres", "SELECT 1")
                return
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline_s:
                    pytest.fail(f"{error}: {(self._data.parent / 'log').read_text()}")
                time.sleep(0.05)

    def stop(self) -> None:
        """Ends it and all its connections; may be called again."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # a "fast" shutdown
            self._process.wait(STOP_S)

    def drop(self) -> None:
        """Ends it at once; its data are of no use any more."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)  # an "immediate" shutdown: no checkpoint
            self._process.wait(STOP_S)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Meanwhile all its processes are stopped, as on a host that hangs."""
        assert self._process is not None
        pids = [self._process.pid]
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
        name = next(self._names)
        self.run(f"{self._url}/postgres", f"CREATE DATABASE {name}")
        return f"{self._url}/{name}"

    @staticmethod
    def run(url: str, statement: str) -> list[Any]:
        """What an administrator of the server does."""
        import psycopg

        with psycopg.connect(url, autocommit=True, connect_timeout=START_S) as db:
            done = db.execute(statement.encode())
            return done.fetchall() if done.description else []

    def _initialise(self) -> None:
        command = [str(self._tools / "initdb"), "-U", USER, "-A", "trust", "-E", "UTF8"]
        done = subprocess.run(
            [*command, "--no-sync", "-D", str(self._data)], stdin=subprocess.DEVNULL,
            capture_output=True, text=True, cwd="/", timeout=START_S,
            env={**os.environ, "LC_ALL": "C"}, **self._owner,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


@contextmanager
def server() -> Iterator[PostgresServer]:
    """Skips where there is none that can be started here."""
    pytest.importorskip("psycopg", reason="needs psycopg: pip install 'psycopg[binary]'")
    tools = find_tools()
    if tools is None:
        pytest.skip("needs PostgreSQL's initdb and postgres: apt-get install postgresql")
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
            running.drop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def find_tools() -> Path | None:
    """The folder of ``initdb`` and ``postgres``: Debian's is not on PATH. The newest version's."""
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    places = sorted(versions, key=lambda path: float(path.parent.name), reverse=True)
    on_path = shutil.which("initdb")
    places += [Path(on_path).parent] if on_path else []
    return next((p for p in places if (p / "initdb").exists() and (p / "postgres").exists()), None)


def _somebody() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    pytest.skip("root cannot run PostgreSQL, and there is no user postgres or nobody")
