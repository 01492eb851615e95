"""SIGHUP: what changes in a running controller, what is named and stays, what is refused."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from ina.cli.controller.reload import Reloader
from ina.controller.app import ControllerApp
from ina.controller.config import make_config
from ina.controller.config.reload import changes
from ina.protocol.spec import VERSION
from ina.rpc import controller_pb2 as pb2
from ina.rpc.controller_pb2_grpc import ControllerStub, OperatorStub
from ina.rpc.operator_token import METADATA_KEY
from ina.rpc.tls import TlsFiles, channel_credentials
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from tests.worlds.fakes.certificates import Authority
from tests.worlds.processes.stand_ins import python

DEADLINE_S = 60.0
TENANT = "[tenants.vision]\njobs = 1\n"
TOKENS = ("the first token of operators", "the second token of operators")


class Running:
    """A controller's process, and what it says on stderr."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address

    def reload(self) -> list[str]:
        """Sends SIGHUP; returns what is said until the answer has come."""
        self.process.send_signal(signal.SIGHUP)
        assert self.process.stderr is not None
        return self.read_until("reload: ")

    def read_until(self, mark: str) -> list[str]:
        """Lines of stderr up to one with ``mark``."""
        assert self.process.stderr is not None
        lines = []
        for line in self.process.stderr:
            lines.append(line.strip())
            if mark in line:
                break
        return lines


@contextmanager
def running(file: Path) -> Iterator[Running]:
    """``ina controller run`` with a switch of its own."""
    command = [python(), "-m", "ina", "controller", "run", str(file), "--embedded-switch"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=file.parent
    ) as process:
        watchdog = threading.Timer(DEADLINE_S, process.kill)  # a test that waits for a line ends
        watchdog.start()
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            yield Running(process, said.split()[2].rstrip(","))
        finally:
            watchdog.cancel()
            process.kill()


@functools.cache
def udp_port(folder: Path) -> int:
    """A free one, the same for all files of a test."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write(folder: Path, text: str, top: str = "") -> Path:
    file = folder / "c.toml"
    switch = f"[switch]\nvalues = 64\ndata_udp_port = {udp_port(folder)}\n"
    file.write_text(f'listen = "127.0.0.1:0"\n{top}{switch}{text}')
    return file


def create(address: str, name: str) -> grpc.StatusCode | None:
    """How CreateJob of the tenant ``vision`` ends; None: well."""
    request = pb2.CreateJobRequest(name=name, world_size=1, tenant="vision", wire_version=VERSION)
    with grpc.insecure_channel(address) as channel:
        try:
            ControllerStub(channel).CreateJob(request, timeout=DEADLINE_S)
        except grpc.RpcError as error:
            return error.code()
    return None


def list_jobs(channel: grpc.Channel, token: str = "") -> grpc.StatusCode | None:
    """How ListJobs with this operator token ends; None: well."""
    metadata = ((METADATA_KEY, token),) if token else ()
    try:
        OperatorStub(channel).ListJobs(pb2.ListJobsRequest(), timeout=DEADLINE_S, metadata=metadata)
    except grpc.RpcError as error:
        return error.code()
    return None


def test_quotas_change_and_what_cannot_is_named(tmp_path: Path) -> None:
    with running(write(tmp_path, TENANT)) as controller:
        assert create(controller.address, "a") is None
        assert create(controller.address, "b") is grpc.StatusCode.RESOURCE_EXHAUSTED
        other = TENANT.replace("1", "2") + "[jobs]\nlease_s = 20\npreempt = true\n"
        write(tmp_path, other + '[store]\npath = "s.db"\n', 'metrics = "127.0.0.1:0"\n')
        said = controller.reload()
        assert said[-1].endswith("reload: done, changed: jobs.preempt, tenants.vision.jobs")
        (kept,) = controller.read_until("restart")
        names = "jobs.lease_s, metrics, store.path"
        assert kept.endswith(f"reload: needs a restart, unchanged: {names}")
        assert create(controller.address, "b") is None
        assert create(controller.address, "c") is grpc.StatusCode.RESOURCE_EXHAUSTED
        write(tmp_path, "[tenants.other]\n")
        assert "tenants.other" in controller.reload()[-1]
        assert create(controller.address, "c") is grpc.StatusCode.PERMISSION_DENIED


WRONG = [
    ("[tenants.vision]\njobs = -1\n", "c.toml: tenants.vision.jobs"),
    ("[tenants.vision]\njobz = 9\n", "c.toml: tenants.vision.jobz: unknown key"),
    ("[tenants", "c.toml: not TOML"),
    ('[tenants.vision]\njobs = 9\n[operators]\ntoken_file = "none"\n', "operator token none"),
    ('[tenants.vision]\njobs = 9\n[switch_tls]\nca = "c.toml"\n', "holds no certificate"),
]


def test_a_wrong_file_changes_nothing_and_says_so(tmp_path: Path) -> None:
    with running(write(tmp_path, TENANT)) as controller:
        assert create(controller.address, "a") is None
        for text, problem in WRONG:
            write(tmp_path, text)
            said = controller.reload()[-1]
            assert problem in said
            assert said.endswith(": nothing has changed")
            assert create(controller.address, "b") is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_the_operator_token_is_another_one_or_none(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKENS[0])
    asking = '[operators]\ntoken_file = "token"\n'
    refused = grpc.StatusCode.UNAUTHENTICATED
    with (
        running(write(tmp_path, asking)) as controller,
        grpc.insecure_channel(controller.address) as channel,
    ):
        assert [list_jobs(channel, shown) for shown in ("", *TOKENS)] == [refused, None, refused]
        token.write_text(TOKENS[1])
        assert controller.reload()[-1].endswith("changed: nothing but files")
        assert [list_jobs(channel, shown) for shown in ("", *TOKENS)] == [refused, refused, None]
        write(tmp_path, "")
        assert "operators.token_file" in controller.reload()[-1]
        assert list_jobs(channel) is None


def test_certificates_are_read_again_and_connections_stay(tmp_path: Path) -> None:
    authority, later = Authority(tmp_path / "now"), Authority(tmp_path / "later")
    place = tmp_path / "tls"
    place.mkdir()

    def put(files: TlsFiles) -> None:
        for name in ("cert", "key", "ca"):
            shutil.copy(getattr(files, name), place / name)

    def connect(to: Authority) -> grpc.Channel:
        files = to.issue(f"worker{next(count)}", usage="clientAuth")
        return grpc.secure_channel(address, channel_credentials(files))

    count = iter(range(9))
    put(authority.issue("controller"))
    tls = '[tls]\ncert = "tls/cert"\nkey = "tls/key"\nca = "tls/ca"\n'
    with running(write(tmp_path, tls)) as controller:
        address = controller.address
        with connect(authority) as early:
            assert list_jobs(early) is None
            renewed = later.issue("controller")
            put(renewed)
            with connect(later) as too_early:
                assert list_jobs(too_early) is grpc.StatusCode.UNAVAILABLE
            controller.reload()
            with connect(later) as new, connect(authority) as former:
                assert list_jobs(new) is None
                assert list_jobs(former) is grpc.StatusCode.UNAVAILABLE
            assert list_jobs(early) is None
            (place / "key").write_text("no key")
            assert "tls.key tls/key: holds no private key" in controller.reload()[-1]
            with connect(later) as new:
                assert list_jobs(new) is None
            write(tmp_path, tls.replace('ca = "tls/ca"\n', ""))
            put(renewed)
            assert "nothing but files" in controller.reload()[-1]
            assert controller.read_until("restart")[-1].endswith("unchanged: tls.ca")


@contextmanager
def losing_its_terminal(
    file: Path, on_hangup: signal.Handlers, log: Path | None = None
) -> Iterator[int]:
    """A controller whose terminal has gone since it was ready: its process. ``log``: its stderr."""
    pid, terminal = pty.fork()
    if not pid:
        signal.signal(signal.SIGHUP, on_hangup)
        if log:
            with log.open("w") as stderr:
                os.dup2(stderr.fileno(), 2)
        os.execv(
            sys.executable,
            [sys.executable, "-m", "ina", "controller", "run", str(file), "--embedded-switch"],
        )
    try:
        while b"ready" not in os.read(terminal, 4096):
            pass
        os.close(terminal)
        yield pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_without_a_terminal_any_more_it_ends(tmp_path: Path) -> None:
    """The kernel sends SIGHUP then, too; a controller that goes on would be forgotten."""
    with losing_its_terminal(write(tmp_path, ""), signal.SIG_DFL) as pid:
        deadline_s = time.monotonic() + DEADLINE_S
        while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        assert os.waitstatus_to_exitcode(ended[1]) == 128 + signal.SIGHUP


def test_with_nohup_it_outlives_its_terminal(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with losing_its_terminal(write(tmp_path, ""), signal.SIG_IGN, log) as pid:
        deadline_s = time.monotonic() + DEADLINE_S
        while "reload: done" not in log.read_text():
            assert os.waitpid(pid, os.WNOHANG) == (0, 0)
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        os.kill(pid, signal.SIGTERM)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 128 + signal.SIGTERM


def test_a_signal_that_comes_while_it_starts_is_heeded_when_it_serves(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = make_config({"listen": "127.0.0.1:0"}, "test")
    asked = make_config({"listen": "127.0.0.1:0", "tenants": {"a": {}}}, "test")

    async def scenario() -> None:
        with SoftSwitch([UdpPort(1)], grpc_addr="127.0.0.1:0") as switch:
            place = {"grpc_addr": switch.grpc_addr}
            controller = ControllerApp(given.with_switch(**place))
            reloader = Reloader(controller, lambda: asked.with_switch(**place), _never)
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.sleep(0.05)
            async with controller:
                assert list(controller.config.tenants) == []
                reloader.begin()
                assert list(controller.config.tenants) == ["a"]

    with caplog.at_level(logging.INFO):
        asyncio.run(asyncio.wait_for(scenario(), DEADLINE_S))
    assert "reload: done, changed: tenants.a" in caplog.messages


def _never() -> None:
    raise AssertionError("there is a terminal, or there never was one")


def test_what_stays_is_named_again_until_it_is_undone() -> None:
    given = make_config({"listen": "127.0.0.1:1"}, "test")
    asked = make_config({"listen": "127.0.0.1:2", "tenants": {"a": {}}}, "test")
    found = changes(given, given, asked)
    assert (found.taken, found.kept) == (["tenants.a"], ["listen"])
    assert (found.config.listen, list(found.config.tenants)) == ("127.0.0.1:1", ["a"])
    assert changes(found.config, found.config, asked).kept == ["listen"]
    assert changes(found.config, found.config, given).kept == []
