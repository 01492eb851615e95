"""p4runtime-shell, unchanged and in an environment of its own, works with both switches."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ina.cli.main import run
from ina.cli.switch import shell_env
from ina.cli.switch.shell_env import shell_python
from ina.p4 import compiled
from ina.p4.info import read_p4info
from tests.p4tools.conftest import PTF
from tests.selection import SWITCHES
from tests.worlds.fakes.p4runtime import Client
from tests.worlds.processes.both_switches import GRPC_ADDR, lab
from tests.worlds.processes.stand_ins import python
from tests.worlds.processes.switch import running_switch

SESSION = Path(__file__).with_name("shell_session.py")
TYPED = """\
print("TABLES", len(list(tables)))
te = table_entry["PoolIngress.forwarding.dmac"](action="PoolIngress.forwarding.forward")
te.match["dst_mac"] = "00:00:00:00:00:05"
te.action["port"] = "3"
te.insert()
print("ENTRIES", len(list(table_entry["PoolIngress.forwarding.dmac"].read())))
"""


@pytest.mark.parametrize("kind", SWITCHES)
def test_a_scripted_session(kind: str, with_shell: Path) -> None:
    program = compiled(64)
    tables = sorted(table.name for table in read_p4info(program.p4info).tables)
    with lab(kind) as network:
        files = (str(program.p4info), str(program.bmv2_json))
        said = network.run(str(with_shell), str(SESSION), GRPC_ADDR, *files)
    did = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    assert did["tables"] == tables
    assert did["inserted"] == ["16"]
    assert did["again"]  # each switch says ALREADY_EXISTS or what it has for it
    assert did["modified"] == ["03"]
    assert did["left"] == 0
    assert did["group"] == [2]
    assert did["counters"] > 0


def shell(address: str, *options: str, cache: Path) -> tuple[str, str]:
    """What `ina switch shell` and p4runtime-shell print for TYPED."""
    done = subprocess.run(
        [python(), "-m", "ina", "switch", "shell", "--switch", address, *options],
        input=TYPED, capture_output=True, text=True, timeout=200, check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(cache.parent), "TERM": "dumb"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def cache(with_shell: Path, tmp_path: Path) -> Path:
    """A cache directory of ina that has the environment already."""
    home = with_shell.parent.parent
    (tmp_path / "ina").mkdir()
    (tmp_path / "ina" / home.name.replace(f"-{PTF.replace('==', '-')}", "")).symlink_to(home)
    return tmp_path / "ina"


def test_ina_switch_shell(cache: Path) -> None:
    with running_switch("--port", "1=udp:") as switch:
        address = switch.grpc_addr
        out, err = shell(address, "--values", "64", cache=cache)
        assert "no program yet, setting pool_v1model_64; primary" in err
        assert re.search(r"TABLES 9\b", out)
        assert re.search(r"ENTRIES 1\b", out)
        # The next finds its program and entry, with nobody in between.
        out, err = shell(address, cache=cache)
        assert f"{address}: primary" in err
        assert "P4RuntimeWriteException" in out + err  # the entry is there already
        assert re.search(r"ENTRIES 1\b", out)
        with Client(address) as controller:
            controller.become_primary(1 << 70)  # the former shell's id was lower
            out, err = shell(address, cache=cache)
            assert f"reading only, client {1 << 70} is primary (see --take-over)" in err
            assert "ENTRIES 1" in out
            assert "PERMISSION_DENIED" in out + err
            out, err = shell(address, "--take-over", cache=cache)
            assert f"primary in the place of client {1 << 70}" in err
            assert "ALREADY_EXISTS" in out  # inserted by the first shell


@pytest.mark.parametrize("kind", [pytest.param("soft", marks=pytest.mark.long), SWITCHES[1]])
def test_ina_switch_shell_twice(kind: str, cache: Path) -> None:
    """As above, and with BMv2."""
    command = [sys.executable, "-m", "ina", "switch", "shell", "--switch", GRPC_ADDR]
    with lab(kind) as network:
        environment = {"XDG_CACHE_HOME": str(cache.parent), "TERM": "dumb"}
        said = network.run(*command, "--values", "64", stdin=TYPED, environment=environment)
        assert "no program yet, setting pool_v1model_64; primary" in said
        assert "ENTRIES 1" in said
        said = network.run(*command, stdin=TYPED, environment=environment)
        assert f"{GRPC_ADDR}: primary" in said
        assert re.search(r"TABLES 9\b", said)
        assert re.search(r"ENTRIES 1\b", said)
        assert "P4RuntimeWriteException" in said  # the entry is there already


def test_what_the_command_refuses(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*options: str) -> str:
        assert run(["switch", "shell", *options]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        return error

    assert "no switch answers at 127.0.0.1:1" in refused("--switch", "127.0.0.1:1")
    assert "65" in refused("--values", "65")
    with running_switch("--port", "1=udp:") as switch:
        address = switch.grpc_addr
        assert "device" in refused("--switch", address, "--device-id", "9")
        with Client(address, 5) as controller:
            controller.become_primary()
            assert "no program yet, and another" in refused("--switch", address)


def test_without_a_package_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with running_switch("--port", "1=udp:") as switch:
        assert run(["switch", "shell", "--switch", switch.grpc_addr]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: pip install p4runtime-shell==0.0.6")
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    with pytest.raises(Exception, match="/proc/nowhere"):
        shell_python()


@pytest.mark.parametrize(
    ("version", "can"), [("22.3", False), ("23.0", True), ("24.1b1", True), ("26.dev0", True)]
)
def test_a_pip_of_any_version_is_looked_at(
    version: str, can: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: version)
    assert shell_env._pip_can_install_elsewhere() == can
