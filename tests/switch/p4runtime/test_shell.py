"""p4runtime-shell, unchanged and in an environment of its own, works with `ina switch`."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from ina.p4 import compiled
from ina.p4.info import read_p4info
from tests.switch.p4runtime.command import running_switch

REQUIREMENT = "p4runtime-shell==0.0.6"
SESSION = Path(__file__).with_name("shell_session.py")
INSTALL_DEADLINE_S = 240


@pytest.fixture(scope="session")
def shell_python(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has p4runtime-shell: installed once, kept in pytest's cache if there is one."""
    cache = getattr(pytestconfig, "cache", None)
    place = cache.mkdir("p4runtime-shell") if cache else tmp_path_factory.mktemp("shell")
    home = place / f"py{sys.version_info[1]}"
    python, done = home / "bin" / "python", home / "installed"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # pytest-xdist has several sessions
        if not done.exists():
            venv.create(home, with_pip=True, clear=False)
            # setuptools: the shell reads its version with pkg_resources.
            install = [str(python), "-m", "pip", "install", "-q", REQUIREMENT, "setuptools<81"]
            result = subprocess.run(
                install, capture_output=True, text=True, timeout=INSTALL_DEADLINE_S, check=False
            )
            if result.returncode:
                if _unreachable(result.stderr):
                    pytest.skip(f"PyPI cannot be reached, so {REQUIREMENT} is not there")
                pytest.fail(f"pip install {REQUIREMENT}: {result.stderr}")
            done.touch()
    return python


def _unreachable(stderr: str) -> bool:
    signs = ("NewConnectionError", "NameResolutionError", "ConnectTimeoutError", "ProxyError")
    return any(sign in stderr for sign in signs) or "Failed to establish" in stderr


def test_shell(shell_python: Path, cache_dir: Path) -> None:
    program = compiled(64)
    tables = sorted(table.name for table in read_p4info(program.p4info).tables)
    with running_switch("--port", "1=udp:") as switch:
        result = subprocess.run(
            [shell_python, SESSION, switch.grpc_addr, program.p4info, program.bmv2_json],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env={**os.environ, "PYTHONPATH": ""},
        )
    assert result.returncode == 0, result.stderr
    did = json.loads(result.stdout.splitlines()[-1])
    assert did["tables"] == tables
    assert did["inserted"] == ["16"]
    assert "ALREADY_EXISTS" in did["again"]
    assert did["modified"] == ["03"]
    assert did["left"] == 0
    assert did["group"] == [2]
    assert did["counters"] > 0
