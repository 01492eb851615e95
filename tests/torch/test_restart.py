"""``torchrun --max-restarts`` recovers from a killed worker, in a job of the same name."""

from __future__ import annotations

import os
import re
import runpy
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.selection import LONG
from tests.worlds.processes.launch import launch
from tests.worlds.processes.runs import slots_used, wait_until
from tests.worlds.processes.services import Services
from tests.worlds.processes.stand_ins import python

_EXAMPLE = Path(__file__).parents[2] / "examples" / "restart.py"
_DEADLINE_S = 120.0
_WORKERS = 2
_STEPS = 40


@contextmanager
def torchrun(folder: Path, name: str, environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The example under torchrun; whatever is left at the end is killed."""
    command = [python(), "-m", "torch.distributed.run", "--standalone", "--max-restarts=2"]
    command += ["--monitor-interval=0.1", f"--nproc-per-node={_WORKERS}", str(_EXAMPLE)]
    command += [f"--checkpoint={folder / name}.pt", f"--steps={_STEPS}", "--pause=0.05"]
    ours = {key: value for key, value in os.environ.items() if not key.startswith("INA_")}
    process = subprocess.Popen(
        command,
        env={**ours, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
        assert process.stdout is not None
        process.stdout.close()


def worker_pid(name: str, rank: int) -> int:
    """Of the process with that rank, whose job has that name."""
    marks = {f"INA_JOB={name}".encode(), f"RANK={rank}".encode()}
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if marks <= set((directory / "environ").read_bytes().split(b"\0")):
                return int(directory.name)
        except OSError:
            continue  # ended meanwhile, or not ours to read
    raise AssertionError(f"no process is rank {rank} of {name}")


def said(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=_DEADLINE_S)
    assert process.returncode == 0, out
    return out


def parameters(out: str) -> str:
    found = re.search(rf"parameters (\w+) after {_STEPS} steps", out)
    assert found, out
    return found[1]


@dataclass(frozen=True)
class Undisturbed:
    """The example's training; in a worker."""

    folder: Path

    def __call__(self, rank: int, workers: int) -> str:
        train: Callable[..., str] = runpy.run_path(str(_EXAMPLE))["train"]
        return train(self.folder / "alone.pt", _STEPS)


@pytest.mark.parametrize("rank", [0, 1] if LONG else [1])
def test_killed_worker_is_started_again(rank: int, tmp_path: Path) -> None:
    name = f"restart-{rank}-{os.getpid()}-{time.monotonic_ns()}"
    # Room for one job: the new one needs the slots of the former.
    with Services(tmp_path / "services", lease_s=5, slots=8192) as services:
        environ = {**services.environ, "INA_JOB": name}
        with torchrun(tmp_path, "killed", environ) as process:
            checkpoint = tmp_path / "killed.pt"
            wait_until(checkpoint.exists, "the first checkpoint")
            os.kill(worker_pid(name, rank), signal.SIGKILL)
            disturbed = said(process)
        assert re.search(r"going on from step \d+", disturbed), disturbed
        wait_until(lambda: slots_used(services.controller_addr) == 0, "no slot in use")
        assert "connectFullMesh failed" not in disturbed  # to an address of the first attempt
        alone = launch(Undisturbed(tmp_path), _WORKERS, tmp_path / "w", environ=environ)
    assert {digest[:16] for digest in alone} == {parameters(disturbed)}
