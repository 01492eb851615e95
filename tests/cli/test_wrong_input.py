"""Wrong input to real commands: one line that names it, exit code 2, nothing left running."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ina.p4 import compiled
from tests.worlds.processes.command import Outcome, ina, inside


def assert_refused(outcome: Outcome, *named: str) -> None:
    assert outcome.code == 2, outcome
    lines = outcome.err.splitlines()
    assert len(lines) == 1, outcome.err
    assert lines[0].startswith("error: ")
    for text in named:
        assert text in lines[0], lines[0]
    assert outcome.out == ""
    assert outcome.left == []


@pytest.fixture
def empty_cache(tmp_path: Path) -> dict[str, str]:
    """An environment in which no translated program has been compiled yet."""
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def taken_tcp() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def taken_udp() -> Iterator[str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        holder.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{holder.getsockname()[1]}"


@pytest.mark.parametrize("command", ["run", "check"])
def test_unknown_configuration_key(command: str, tmp_path: Path) -> None:
    config = tmp_path / "controller.toml"
    config.write_text("[jobs]\nsltos = 512\n")
    assert_refused(ina("controller", command, config), "controller.toml", "jobs.sltos")


def test_controller_port_in_use(taken_tcp: str, tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    config = tmp_path / "controller.toml"
    config.write_text(f"[switch]\ndata_udp_port = {free}\n")
    outcome = ina("controller", "run", config, "--embedded-switch", "--listen", taken_tcp)
    assert_refused(outcome, taken_tcp)


def test_a_loss_of_a_switch_that_is_not_embedded() -> None:
    outcome = ina("controller", "run", "--loss-rate", "0.1")
    assert_refused(outcome, "--loss-rate", "--embedded-switch")


def test_no_switch_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    outcome = ina("controller", "run", "--listen", "127.0.0.1:0", "--switch", address)
    assert_refused(outcome, address)


def test_no_controller_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    assert_refused(ina("job", "list", "--controller", address), address)


def test_p4runtime_port_in_use(taken_tcp: str) -> None:
    outcome = ina("switch", "--port", "1=udp:127.0.0.1:0", "--grpc-addr", taken_tcp)
    assert_refused(outcome, taken_tcp)


def test_data_port_in_use(taken_udp: str) -> None:
    outcome = ina("switch", "--port", f"1=udp:{taken_udp}", "--grpc-addr", "127.0.0.1:0")
    assert_refused(outcome, taken_udp)


def test_no_c_compiler(tmp_path: Path, empty_cache: dict[str, str]) -> None:
    program = compiled(360)  # a build that the fork server has not loaded
    (tmp_path / "bin").mkdir()
    outcome = ina(
        "switch", "--grpc-addr", "127.0.0.1:0", "--port", "1=udp:127.0.0.1:0",
        "--p4info", program.p4info, "--program", program.bmv2_json,
        env={**empty_cache, "PATH": str(tmp_path / "bin"), "CC": ""},
    )  # fmt: skip
    assert_refused(outcome, "C compiler")


def test_unsupported_p4_construct(tmp_path: Path) -> None:
    document = json.loads(compiled(64).bmv2_json.read_text())
    action = document["actions"][0]
    action["primitives"].append(metered())
    path = tmp_path / "metered.json"
    path.write_text(json.dumps(document))
    outcome = ina(
        "switch", "--grpc-addr", "127.0.0.1:0", "--port", "1=udp:127.0.0.1:0",
        "--p4info", compiled(64).p4info, "--program", path,
    )  # fmt: skip
    assert_refused(outcome, "execute_meter", "router.p4", "41")


def metered() -> dict[str, Any]:
    """What p4c writes for ``m.execute_meter(...)`` on line 41."""
    return {
        "op": "execute_meter",
        "parameters": [{"type": "hexstr", "value": "0x1"}],
        "source_info": {
            "filename": "router.p4", "line": 41, "column": 8,
            "source_fragment": "m.execute_meter(0, meta.color)",
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    "command", [["demo", "--workers", "33"], ["bench", "allreduce", "--workers", "2,33"]]
)
def test_33_workers(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(inside(capsys, *command), "33", "32")


@pytest.mark.parametrize("dtype", ["float64", "int64", "complex64", "tensor"])
def test_unsupported_dtype(dtype: str, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = inside(capsys, "bench", "allreduce", "--dtype", dtype)
    assert_refused(outcome, f"--dtype {dtype}", "int32", "float32", "float16", "bfloat16")


@pytest.mark.parametrize("op", ["max", "product", ""])
def test_unsupported_op(op: str, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = inside(capsys, "bench", "allreduce", "--op", op)
    assert_refused(outcome, f"--op {op}", "sum and avg")
