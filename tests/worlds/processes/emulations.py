"""Emulations for tests: each with a name of its own, and nothing of it left afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from ina.emulate import namespaces, remains
from ina.emulate.programming import SwitchPlan
from ina.tables.values import Entry
from ina.testing.soft_device import cannot_run_xdp
from tests.worlds.processes.forks import Running, run_ina
from tests.worlds.processes.namespaces import require_root
from tests.worlds.processes.stand_ins import python

READY_TIMEOUT_S = 240.0
ALL_REDUCE = """
import os
import numpy as np
from ina.host import Session, WorkerOptions

def numbers(rank):
    return np.random.default_rng(rank).integers(-1000, 1000, 5000, np.int32)

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = os.environ["INA_CONTROLLER"]
with Session.join(where, "sum", rank, world, WorkerOptions(host=os.environ["INA_HOST"])) as session:
    want = sum(map(numbers, range(world)))
    for _ in range(3):
        assert (session.all_reduce(numbers(rank)) == want).all()
print(f"rank {rank}: equal")
"""
"""What a host runs: sums of integers, compared bit for bit."""


def new_name() -> str:
    return f"t{uuid.uuid4().hex[:8]}"


def need(kind: str) -> None:
    """Skips the test, saying why, where it cannot run."""
    require_root()
    if shutil.which("tc") is None:
        pytest.skip("needs tc: install iproute2")
    if kind == "xdp" and (why := cannot_run_xdp()):
        pytest.skip(f"device xdp {why}")
    if kind == "bmv2" and shutil.which("simple_switch_grpc") is None:
        pytest.skip("needs simple_switch_grpc on PATH: build BMv2 with its P4Runtime server")


def star(folder: Path, hosts: int, *, link: str = "", top: str = "") -> Path:
    """A topology file: ``link`` are keys of every link, ``top`` is put before all."""
    lines = [top, "[switches.s1]"]
    for number in range(1, hosts + 1):
        lines += [f"[hosts.h{number}]", f'ip = "10.0.0.{number}/24"']
        lines += ["[[links]]", f'ends = ["h{number}", "s1-p{number}"]', link]
    file = folder / "star.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


def start(*arguments: str | Path) -> Running:
    """``ina emulate ARGUMENTS``; its switches, controller and others are forks, too."""
    return Running("emulate", *map(str, arguments), python=python())


def call(
    *arguments: str | Path, timeout_s: float = 300.0, by: str = ""
) -> subprocess.CompletedProcess[str]:
    """``by``: the interpreter of its switches and others, if not forks."""
    return run_ina("emulate", *map(str, arguments), timeout_s=timeout_s, python=by or python())


@contextlib.contextmanager
def up(file: Path, name: str, out: Path, *options: str) -> Iterator[Running]:
    """``ina emulate FILE`` that has said it is ready; killed and cleaned at the end."""
    process = start(file, "--name", name, "--out", out, "--json", *options)
    try:
        said = _line(process.stdout)
        assert said, process.communicate(timeout=30)[1]
        assert json.loads(said)["name"] == name
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)
        remains.clean(name)


def _line(stream: IO[str] | None) -> str:
    assert stream is not None
    signal.alarm(int(READY_TIMEOUT_S))  # pytest-timeout is the other guard
    try:
        return stream.readline()
    finally:
        signal.alarm(0)


def left(name: str) -> dict[str, Any]:
    """What there still is of a network: empty if all is gone."""
    found: dict[str, Any] = {}
    if spaces := namespaces.networks().get(name):
        found["namespaces"] = spaces
    files = [*remains.RUN_DIR.glob(f"{name}.*"), *namespaces.ETC_DIR.glob(f"ina.{name}.*")]
    if files:
        found["files"] = list(map(str, files))
    if pids := [pid for pid in os.listdir("/proc") if pid.isdecimal() and _mentions(pid, name)]:
        found["processes"] = pids
    return found


def _mentions(pid: str, name: str) -> bool:
    """The log folder of a test's network has its name: whatever it started has it in cmdline."""
    with contextlib.suppress(OSError):
        return f"/{name}/".encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def forwarding_of(plan: SwitchPlan) -> dict[str, int]:
    """Ports by MAC address, as a switch shall forward."""
    entries = (item for item in plan.items if isinstance(item, Entry))
    return {mac_text(entry.exact("dst_mac")): entry.param("port") for entry in entries}


def mac_text(mac: int) -> str:
    return mac.to_bytes(6, "big").hex(":")
