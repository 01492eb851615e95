"""Switch, controller, workers and operators as processes, every connection with mutual TLS."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from ina.cli import main
from ina.controller.embedded import Embedded
from ina.host import Session, WorkerOptions
from ina.host.errors import ControllerError
from ina.rpc.channel import open_channel
from ina.rpc.tls import TlsError, TlsFiles
from ina.rpc.tls_probe import tls_trouble
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from tests.worlds.fakes.certificates import Authority
from tests.worlds.processes.command import ina, inside
from tests.worlds.processes.controller_command import started

TOKEN = "an operator's token of the tests"
DEADLINE_S = 60.0


class World(NamedTuple):
    """Who has which certificate."""

    switch: TlsFiles
    controller: TlsFiles
    worker: TlsFiles
    stranger: TlsFiles  # signed by another authority, trusting ours
    token_file: Path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    directory = tmp_path_factory.mktemp("ours")
    authority = Authority(directory)
    stranger = Authority(tmp_path_factory.mktemp("theirs")).issue("stranger")
    token_file = directory / "token"
    token_file.write_text(TOKEN + "\n")
    return World(
        authority.issue("switch", usage="serverAuth"),
        authority.issue("controller"),
        authority.issue("worker", usage="clientAuth"),
        replace(stranger, ca=str(authority.ca)),
        token_file,
    )


def section(name: str, files: TlsFiles) -> str:
    return f'[{name}]\ncert = "{files.cert}"\nkey = "{files.key}"\nca = "{files.ca}"\n'


def configuration(path: Path, switch: str, listen: TlsFiles, towards_switch: TlsFiles) -> Path:
    path.write_text(
        'listen = "127.0.0.1:0"\n'
        f'[switch]\ngrpc_addr = "{switch}"\nvalues = 64\n'
        + section("tls", listen)
        + section("switch_tls", towards_switch)
    )
    return path


def environment(files: TlsFiles) -> dict[str, str]:
    return {"INA_TLS_CA": files.ca, "INA_TLS_CERT": files.cert, "INA_TLS_KEY": files.key}


def switch_options(files: TlsFiles) -> list[str]:
    tls = ["--tls-cert", files.cert, "--tls-key", files.key, "--tls-ca", files.ca]
    return ["switch", "--grpc-addr", "127.0.0.1:0", "--port", "1=udp:127.0.0.1:0", *tls]


@contextmanager
def running(world: World, tmp_path: Path) -> Iterator[str]:
    """The controller's address."""
    with ExitStack() as stack:
        _, switch = stack.enter_context(started(*switch_options(world.switch)))
        host, _, udp_port = switch["ports"]["1"].removeprefix("udp:").rpartition(":")
        file = configuration(
            tmp_path / "c.toml", switch["grpc_addr"], world.controller, world.controller
        )
        text = file.read_text().replace(
            "values = 64\n", f'values = 64\ndata_host = "{host}"\ndata_udp_port = {udp_port}\n'
        )
        file.write_text(text + f'[operators]\ntoken_file = "{world.token_file}"\n')
        assert main.run(["controller", "check", str(file)]) == 0
        _, ready = stack.enter_context(started("controller", "run", str(file)))
        yield ready["controller"]


def test_sums_and_operators_over_mutual_tls(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(world.worker).items():
        monkeypatch.setenv(name, value)
    gate = threading.Barrier(2)

    def work(address: str, rank: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
        with Session.join(address, "j", rank, 2, WorkerOptions(timeout_s=DEADLINE_S)) as session:
            total = session.all_reduce(np.full(1000, rank + 1, np.int32))
            gate.wait(DEADLINE_S)
            return np.asarray(total)

    with running(world, tmp_path) as address, ThreadPoolExecutor(2) as pool:
        for result in [pool.submit(work, address, rank) for rank in range(2)]:
            np.testing.assert_array_equal(result.result(DEADLINE_S), np.full(1000, 3, np.int32))
        listing = ["job", "list", "--controller", address]
        assert ina(*listing, env={"INA_OPERATOR_TOKEN": TOKEN}).code == 0
        refused = ina(*listing)
        assert refused.code == 2
        assert "operator token missing: set INA_OPERATOR_TOKEN" in refused.err

        monkeypatch.setenv("INA_TLS_CA", world.stranger.cert)
        refused_join = pytest.raises(ControllerError, match="is not signed by INA_TLS_CA")
        with refused_join:  # at once: trying until the timeout would not mend it
            Session.join(address, "k", 0, 1, WorkerOptions(timeout_s=10 * DEADLINE_S))
        monkeypatch.setenv("INA_TLS_CA", "/nowhere")
        with pytest.raises(TlsError, match="INA_TLS_CA /nowhere: No such file"):
            Session.join(address, "k", 0, 1, WorkerOptions(timeout_s=DEADLINE_S))

        for files, why in [
            (replace(world.worker, cert="", key=""), "set INA_TLS_CERT and INA_TLS_KEY"),
            (world.stranger, f"it refuses INA_TLS_CERT {world.stranger.cert}"),
            (replace(world.worker, ca=world.stranger.cert), "not signed by INA_TLS_CA"),
            (TlsFiles(), "it speaks TLS: set INA_TLS_CA"),
            (replace(world.worker, key="/nowhere"), "INA_TLS_KEY /nowhere: No such file"),
        ]:
            refused = ina(*listing, env={"INA_OPERATOR_TOKEN": TOKEN, **environment(files)})
            assert (refused.code, len(refused.err.splitlines())) == (2, 1), refused.err
            assert why in refused.err


def test_a_controller_without_the_right_certificate_does_not_start(
    world: World, tmp_path: Path
) -> None:
    with started(*switch_options(world.switch)) as (_, switch):
        for files, why in [
            (world.stranger, f"it refuses switch_tls.cert {world.stranger.cert}"),
            (TlsFiles(), "it speaks TLS: set switch_tls.ca"),
        ]:
            file = configuration(tmp_path / "c.toml", switch["grpc_addr"], TlsFiles(), files)
            refused = ina("controller", "run", file)
            assert (refused.code, len(refused.err.splitlines())) == (2, 1), refused.err
            assert switch["grpc_addr"] in refused.err
            assert why in refused.err


def test_an_embedded_controller_serves_with_the_environment_s_files(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(world.controller).items():
        monkeypatch.setenv(name, value)
    with Embedded(values=64) as embedded:
        with Session.join(
            embedded.controller_addr, "j", 0, 1, WorkerOptions(timeout_s=DEADLINE_S)
        ) as session:
            total = session.all_reduce(np.ones(10, np.int32))
            np.testing.assert_array_equal(total, np.ones(10, np.int32))
        assert tls_trouble(embedded.controller_addr, TlsFiles()) == "it speaks TLS: set tls.ca"
    monkeypatch.delenv("INA_TLS_CERT")
    monkeypatch.delenv("INA_TLS_KEY")
    with pytest.raises(TlsError, match="INA_TLS_CA is set and INA_TLS_CERT is not"):
        Embedded(values=64).__enter__()


def test_what_goes_over_the_network_in_plain_text_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Embedded(values=64):
        assert not caplog.records  # nobody else reaches 127.0.0.1
    with Embedded(values=64, host="0.0.0.0"):
        assert "is served without TLS" in caplog.text
    for host, warned in (("127.0.0.1", False), ("0.0.0.0", True)):
        caplog.clear()
        with SoftSwitch([UdpPort(1)], grpc_addr=f"{host}:0"):
            assert ("has no TLS: who reaches it can own the switch" in caplog.text) == warned
    monkeypatch.setenv("INA_OPERATOR_TOKEN", TOKEN)
    for address, warned in (("localhost:1", False), ("[::1]:1", False), ("192.0.2.1:1", True)):
        caplog.clear()
        open_channel(address).close()
        assert ("INA_OPERATOR_TOKEN goes over the network without TLS" in caplog.text) == warned


def test_check_reads_the_files(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for listen, why in [
        (replace(world.controller, cert="/nowhere"), "tls.cert /nowhere: No such file"),
        (world.worker, f"tls.cert {world.worker.cert}: the certificate is not for a server"),
        (replace(world.controller, key=world.switch.key), "is not the key of tls.cert"),
    ]:
        file = configuration(tmp_path / "c.toml", "127.0.0.1:1", listen, world.controller)
        refused = inside(capsys, "controller", "check", file)
        assert (refused.code, len(refused.err.splitlines())) == (2, 1), refused.err
        assert why in refused.err
    file.write_text('[operators]\ntoken_file = "/nowhere"\n')
    assert (
        "operator token /nowhere: No such file" in inside(capsys, "controller", "check", file).err
    )


def test_a_switch_says_which_file_is_wrong(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [*switch_options(world.switch), "--json"]
    options[options.index("--tls-key") + 1] = os.devnull
    refused = inside(capsys, *options)
    assert (refused.code, len(refused.err.splitlines())) == (2, 1), refused.err
    assert f"--tls-key {os.devnull}: holds no private key in PEM" in refused.err
