"""deploy/slurm/train.sbatch, with an srun that plays two nodes on this machine."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.worlds.processes.machine import DEPLOY, RUN_S, machine

SCRIPT = DEPLOY / "slurm" / "train.sbatch"
# Runs the command once a node, as srun --ntasks-per-node=1 does, and fails where one fails.
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
for ((node = 0; node < SLURM_NNODES; node++)); do SLURM_NODEID=$node "$@" & tasks+=($!); done
for task in "${tasks[@]}"; do wait "$task" || failed=1; done
exit ${failed:-0}
"""
TRAIN = """
import sys
import torch, torch.distributed as dist
dist.init_process_group("ina")
tensor = torch.full((1000,), float(dist.get_rank() + 1))
dist.all_reduce(tensor)
said = f"rank {dist.get_rank()} of {dist.get_world_size()}: {tensor[0].item():g} {sys.argv[1]}"
sys.stdout.write(said + "\\n")  # at once: both ranks have one pipe
dist.destroy_process_group()
"""
SLURM = {"SLURM_NNODES": "2", "SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "train"}


def test_bash_reads_it() -> None:
    subprocess.run(["bash", "-n", SCRIPT], check=True)


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck")
def test_shellcheck_finds_nothing() -> None:
    done = subprocess.run(["shellcheck", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def submit(text: str, folder: Path) -> tuple[int, list[str]]:
    """What sbatch's copy of the script exits with, and all that it and the tasks print.

    Neither a controller nor a folder may be left by then.
    """
    srun, scratch = folder / "bin" / "srun", folder / "scratch"
    srun.parent.mkdir()
    srun.write_text(SRUN)
    srun.chmod(0o755)
    scratch.mkdir()
    train = folder / "train.py"
    train.write_text(text)
    with machine(folder) as host:
        activate = folder / "venv" / "bin" / "activate"
        activate.parent.mkdir(parents=True)
        activate.write_text(f"PATH={host.scripts}:$PATH\n")
        job = host.start(
            *("bash", str(SCRIPT), str(train), "an argument"), **SLURM, VENV=str(folder / "venv"),
            ADDRESS="127.0.0.1", TMPDIR=str(scratch), PATH=f"{srun.parent}:{host.environ['PATH']}",
        )  # fmt: skip
        said, _ = job.communicate(timeout=RUN_S)  # whoever is left would hold the pipe open
    assert [path for path in scratch.iterdir() if path.name.startswith("tmp.")] == []
    return job.returncode, said.splitlines()


def test_a_job_of_two_nodes_trains(tmp_path: Path) -> None:
    code, said = submit(TRAIN, tmp_path)
    assert code == 0, said
    assert {f"rank {rank} of 2: 3 an argument" for rank in range(2)} <= set(said), said
    assert any(line.startswith("ready: controller 127.0.0.1:22133") for line in said), said


def test_a_training_that_fails_fails_the_job(tmp_path: Path) -> None:
    code, said = submit("raise SystemExit(3)", tmp_path)
    assert code != 0, said
