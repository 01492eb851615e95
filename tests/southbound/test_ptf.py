"""The PTF tests for a Tofino, under PTF itself, with the soft switch behind the cables."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ina.netns import within
from ina.protocol.emit import ROOT
from tests.p4tools.conftest import PTF, _index_answers
from tests.southbound.conftest import make_sde
from tests.worlds.fakes.tofino_bridge import VARIABLE
from tests.worlds.processes.both_switches import GRPC_ADDR, Lab, lab
from tests.worlds.processes.stand_ins import python

TESTS = ROOT / "tofino" / "ptf"
pytestmark = pytest.mark.timeout(1200)  # PTF in processes of its own, on a busy machine
PORTS = 4
START = """\
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
runpy.run_path(sys.path[0] + "/bin/ptf", run_name="__main__")
"""


@pytest.fixture(scope="session")
def with_ptf(pytestconfig: pytest.Config) -> Path:
    """A folder for PYTHONPATH that has PTF and nothing else: the rest is in our environment."""
    home = pytestconfig.rootpath / ".pytest_cache" / "d" / f"{PTF.replace('==', '-')}-alone"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "ptf" / "__init__.py").exists():
            pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(home)]
            done = subprocess.run(
                [*pip, PTF], capture_output=True, text=True, timeout=300, check=False
            )
            if done.returncode:
                if _index_answers():
                    raise AssertionError(done.stderr)
                pytest.skip(f"PyPI cannot be reached: {done.stderr.splitlines()[-1:]}")
    return home


@pytest.fixture(scope="module")
def network() -> Iterator[Lab]:
    """One switch for all: each run sets its program anew."""
    with lab("soft", 8) as network:
        yield network


def run_ptf(
    network: Lab, with_ptf: Path, log: Path, tests: tuple[str, ...], parameters: str = "",
    environment: dict[str, str] | None = None, cables: int = PORTS, crossed: bool = False,
) -> tuple[int, str]:  # fmt: skip
    """Exit status, and what PTF printed. ``crossed``: it takes each port for another."""
    ports = network.ports[:cables]
    ends = reversed(ports) if crossed else ports
    pairs = zip(ports, ends, strict=True)
    interfaces = [word for port, end in pairs for word in ("--interface", f"{port}@eth{end}")]
    done = subprocess.run(
        [
            *within(network.namespace, [python(), "-c", START, str(with_ptf)]),
            *("--test-dir", str(TESTS), *interfaces, "--log-file", str(log), "--qlen", "1000"),
            *(["--test-params", parameters] if parameters else []),
            *tests,
        ],
        capture_output=True, text=True, timeout=1000, check=False,
        env={**os.environ, **(environment or {})},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_cases_run_over_the_soft_switch(network: Lab, with_ptf: Path, tmp_path: Path) -> None:
    log = tmp_path / "ptf.log"
    status, said = run_ptf(
        network, with_ptf, log, ("conformance.Counters", "conformance.Merging"),
        f"southbound='p4runtime';grpc='{GRPC_ADDR}';only='c*'",
    )  # fmt: skip
    assert status == 0, said
    assert "Counters: 2 cases green, 0 differences, 0 not run" in said
    assert re.search(r"Merging: [1-9]\d* cases green, 0 differences, 0 not run", said)
    assert "Ran 2 tests" in said
    # The same by the environment; a case that needs more ports than there are is named.
    environment = {
        "INA_SOUTHBOUND": "p4runtime", "INA_GRPC": GRPC_ADDR, "INA_ONLY": "multicast/[23]-*",
    }  # fmt: skip
    status, said = run_ptf(
        network, with_ptf, log, ("conformance.Multicast",), environment=environment, cables=2
    )
    assert status == 0, said
    assert "Multicast: 1 cases green, 0 differences, 2 not run" in said
    assert "multicast/3-ports not run: software has no port 3" in said


def test_cases_run_over_bfruntime(network: Lab, with_ptf: Path, tmp_path: Path) -> None:
    """The SDE is a fake, whose switch keeps what a switch keeps; the soft switch forwards by it."""
    client = (
        "from tests.worlds.fakes.tofino_client import *\n"
        "from tests.worlds.fakes.tofino_bridge import start_from_environment\n"
        "start_from_environment()\n"
    )
    environment = {
        "SDE_INSTALL": str(make_sde(tmp_path / "sde", client)),
        "PYTHONPATH": str(ROOT),
        VARIABLE: GRPC_ADDR,
    }
    topics = ("Counters", "Forwarding", "Malformed", "SlotRows", "Shared")
    # Of the shared: groups that change, replays, two ports and two jobs.
    only = "counters/* l?/* cpu/* flood/* beside/* malformed/*-behind* t* shared/[grt]*"
    status, said = run_ptf(
        network, with_ptf, tmp_path / "ptf.log", tuple(f"conformance.{it}" for it in topics),
        f"southbound='bfrt';values='64';only='{only}'", environment, cables=8,
    )  # fmt: skip
    assert status == 0, said
    for topic in topics:
        green = re.search(rf"{topic}: (\d+) cases green, 0 differences, \d+ not run", said)
        assert green is not None, said
        assert int(green[1]) >= 2, said
    # What Tofino cannot know is not asked: bytes behind the IP packet.
    assert re.sub("-behind-within-ip", "", said).count("behind") == 0


def test_cables_that_are_crossed_fail_the_test_and_say_so(
    network: Lab, with_ptf: Path, tmp_path: Path
) -> None:
    parameters = f"southbound='p4runtime';grpc='{GRPC_ADDR}';only='l2/unknown';patience='3'"
    status, said = run_ptf(
        network, with_ptf, tmp_path / "ptf.log", ("conformance.Forwarding",), parameters,
        crossed=True,
    )  # fmt: skip
    assert status != 0
    assert "Forwarding: 0 cases green, 1 differences, 0 not run" in said
    assert "l2/unknown: software: no fence from port" in said
    assert "its ports are not wired as the port map says" in said


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ("southbound='thrift'", "southbound 'thrift': expected bfrt or p4runtime"),
        ("southbound='bfrt'", "set SDE_INSTALL to the SDE's install folder"),
        (
            "southbound='p4runtime';grpc='127.0.0.1:1';patience='1'",
            "127.0.0.1:1 device 1: no answer within 1 s",
        ),
    ],
)
def test_what_is_wrong_is_said(
    network: Lab, with_ptf: Path, tmp_path: Path, parameters: str, says: str
) -> None:
    status, said = run_ptf(
        network, with_ptf, tmp_path / "ptf.log", ("conformance.Counters",), parameters
    )
    assert status != 0
    assert says in said
