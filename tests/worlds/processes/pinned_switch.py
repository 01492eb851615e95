"""A pinned switch of device xdp, whose process a test kills; two hosts and a controller."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ina import netns
from ina.emulate import namespaces, nodes, wiring
from ina.emulate.processes import Logged, environment
from ina.emulate.toml_file import load_toml
from ina.emulate.topology import with_kind
from ina.switch.xdp.detach import detach
from tests.worlds.processes.emulations import need, new_name, star

READY_S = 120.0
RANKS = 2
SUM = """
import os, sys, time
import numpy as np
from ina.host import Session, WorkerOptions

def numbers(rank, step):
    return np.random.default_rng([rank, step]).integers(-1000, 1000, 2000, np.int32)

rank, world, folder = int(sys.argv[1]), 2, sys.argv[2]
step = 0
with Session.join(sys.argv[3], "sum", rank, world, WorkerOptions(host=sys.argv[4])) as session:
    last = np.zeros(1, np.int32)
    while last[0] == 0:
        want = sum(numbers(it, step) for it in range(world))
        assert (session.all_reduce(numbers(rank, step)) == want).all(), f"step {step}: a wrong sum"
        step += 1
        print(f"step {step}", flush=True)
        told = rank == 0 and os.path.exists(os.path.join(folder, "stop"))
        last = session.all_reduce(np.array([told], np.int32))
    print("end", flush=True)
"""


@contextlib.contextmanager
def bpf_file_system() -> Iterator[Path]:
    """One of its own; $INA_BPFFS names it meanwhile."""
    folder = Path(tempfile.mkdtemp(prefix="ina-bpf-", dir="/run"))
    subprocess.run(["mount", "-t", "bpf", "bpf", folder], check=True, timeout=30)
    patch = pytest.MonkeyPatch()
    try:
        patch.setenv("INA_BPFFS", str(folder))
        yield folder
    finally:
        patch.undo()
        subprocess.run(["umount", folder], check=True, timeout=30)
        folder.rmdir()


class PinnedSwitch:
    """A network whose switch :meth:`start` starts, and is to be killed; its hosts run a job."""

    def __init__(self, folder: Path, strangers: int = 0) -> None:
        """``strangers``: hosts beside the job's two."""
        self.folder = folder
        self.pin = new_name()
        file = star(folder, RANKS + strangers, top=f'name = "{new_name()}"')
        self.topology = with_kind(load_toml(file), "xdp")
        self._net = namespaces.namespace(self.topology.name, wiring.NET)
        self._starts = 0
        self._stack = ExitStack()

    def __enter__(self) -> PinnedSwitch:
        need("xdp")
        with ExitStack() as undo:
            undo.enter_context(bpf_file_system())
            undo.callback(namespaces.remove, wiring.namespaces_of(self.topology))
            wiring.build(self.topology)
            undo.callback(detach, self.pin)
            self._stack = undo.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def start(self, *options: str) -> Logged:
        """``ina switch``, ready."""
        self._starts += 1
        (switch,) = self.topology.switches
        command = [*nodes.switch_command(self.topology, switch), "--pin", self.pin, *options]
        return self._run(f"switch {self._starts}", self._net, command, '"taken_over"')

    def controller(self) -> None:
        """Starts it."""
        file = self.folder / "controller.toml"
        file.write_text(nodes.controller_toml(nodes.controller_config(self.topology).document()))
        command = [sys.executable, "-m", "ina", "controller", "run", str(file)]
        self._run("controller", self._net, command, "ready: ")

    def ranks(self) -> list[Logged]:
        """The job's, which ends when there is a file ``stop``."""
        script = self.folder / "sum.py"
        script.write_text(SUM)
        found = []
        for rank, host in enumerate(self.topology.hosts[:RANKS]):
            command = [sys.executable, str(script), str(rank), str(self.folder), nodes.CONTROLLER]
            command.append(str(host.address.ip))
            space = self.space(rank)
            found.append(self._run(f"rank {rank}", space, command, "step 1\n"))
        return found

    def space(self, number: int) -> str:
        """The namespace of a host, from 0: ranks, then strangers."""
        return namespaces.namespace(self.topology.name, self.topology.hosts[number].name)

    def ask(self, *arguments: str) -> str:
        """``ina ARGUMENTS`` beside the controller; what it prints."""
        command = [sys.executable, "-m", "ina", *arguments, "--controller", nodes.CONTROLLER]
        done = subprocess.run(
            netns.within(self._net, command),
            capture_output=True,
            text=True,
            timeout=READY_S,
            check=True,
        )
        return done.stdout

    def show(self) -> dict[str, Any]:
        """What the controller reads of the switch."""
        shown: dict[str, Any] = json.loads(self.ask("switch", "show", "--json"))
        return shown

    def is_reached(self) -> bool:
        """Whether the controller has found the switch again as often as it was started again."""
        return self.log_of("controller").count(" is back") == self._starts - 1

    def log_of(self, what: str) -> str:
        """What a process has said."""
        (log,) = self.folder.glob(f"{what}-*.log")
        return log.read_text()

    def _run(self, what: str, space: str, command: list[str], ready: str) -> Logged:
        log = self.folder / f"{what}-{uuid.uuid4().hex[:4]}.log"
        process = Logged(what, space, command, log, environment())
        self._stack.callback(process.stop)
        if "step" not in ready:
            process.await_line(ready, READY_S)
        return process


def wait_for(true: Callable[[], bool]) -> None:
    """Fails if it does not become so."""
    deadline_s = time.monotonic() + READY_S
    while not true():
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def steps(rank: Logged) -> int:
    """How many it has done."""
    rank.check()
    return rank.log.read_text().count("step ")


def end_job(folder: Path, ranks: list[Logged]) -> list[str]:
    """What each has said last."""
    os.close(os.open(folder / "stop", os.O_CREAT))
    for rank in ranks:
        rank.process.wait(READY_S)
        assert rank.process.returncode == 0, rank.log.read_text()
    return [rank.log.read_text().splitlines()[-1] for rank in ranks]
