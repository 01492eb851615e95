"""A machine of its own for what deploy/ runs: a network with lo alone, names in /etc/hosts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ina.rpc.generate import ROOT
from tests.worlds.processes.page_network import PrivateNetwork
from tests.worlds.processes.stand_ins import forks_for

DEPLOY = ROOT / "deploy"
RUN_S = 150.0


class Machine:
    """Commands run with the tests' ``ina`` and ``torchrun``, in ``scripts``, first on PATH."""

    def __init__(self, prefix: list[str], hosts: Path, scripts: Path) -> None:
        self._prefix = prefix
        self._hosts = hosts
        self.started: list[subprocess.Popen[str]] = []
        self.scripts = scripts
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("INA_", "SLURM_"))}
        self.environ = {**kept, "PATH": f"{scripts}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}

    def start(self, *command: str, **environ: str) -> subprocess.Popen[str]:
        """Start it; standard output and error are one."""
        script = f'mount --bind {self._hosts} /etc/hosts && exec "$@"'
        process = subprocess.Popen(
            [*self._prefix, "unshare", "--mount", "sh", "-c", script, "sh", *command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**self.environ, **environ}, start_new_session=True,
        )  # fmt: skip
        self.started.append(process)
        return process


@contextmanager
def machine(folder: Path, *names: str) -> Iterator[Machine]:
    """Skips the test where this process may not make one. Each of `names` means 127.0.0.1."""
    network = PrivateNetwork()
    forks = forks_for(folder / ".forks")
    running = None
    try:
        if not network.prefix:
            pytest.skip("needs root and network namespaces")
        hosts = folder / "hosts"
        hosts.write_text(f"127.0.0.1 localhost {os.uname().nodename} {' '.join(names)}\n")
        scripts = forks.folder if forks else Path(sys.executable).parent
        running = Machine(network.prefix, hosts, scripts)
        yield running
    finally:
        if running is not None:  # a test that failed left them
            stop(*(process for process in running.started if process.poll() is None))
        network.close()
        if forks:
            forks.close()


def ready_line(process: subprocess.Popen[str]) -> str:
    """The server's line that says so; fails when it ends instead."""
    assert process.stdout is not None
    said: list[str] = []
    while not (said and said[-1].startswith("ready: ")):
        said.append(process.stdout.readline())
        assert said[-1], f"ended with {process.wait()}: {said}"
    return said[-1]


def stop(*processes: subprocess.Popen[str]) -> None:
    """End all of them, and wait until they have ended."""
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)  # not for its output: who left its group may hold the pipe
