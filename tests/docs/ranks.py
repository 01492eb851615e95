"""The ranks of ``torchrun --nproc-per-node N SCRIPT``, as forks of a process that has its imports.

torchrun and each of its ranks take two seconds of a core to import torch. So in ``make test`` the
scripts of the pages on PyTorch run in forks, with the environment that torchrun gives; in ``make
test-long``, and on all other pages always, torchrun itself runs them.
"""

from __future__ import annotations

import os
import re
import runpy
import socket
import sys
import time
from pathlib import Path

from tests.docs.page import Block
from tests.forks import context
from tests.selection import LONG

_COMMAND = re.compile(r"torchrun --nproc-per-node (\d+) (\w+\.py)\n")


def script_of(block: Block) -> tuple[int, str] | None:
    """How many ranks, and their script, where forks stand for torchrun."""
    found = _COMMAND.fullmatch(block.script)
    if found is None or LONG or block.page.parent.name != "pytorch":
        return None
    return int(found[1]), found[2]


def run(folder: Path, ranks: int, script: str, timeout_s: float) -> tuple[int, str]:
    """The first exit code that is not 0, and what all of them printed."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / f".{script}.log"
    processes = [
        context.Process(target=_rank, args=(folder, script, rank, ranks, port, log))
        for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    deadline = time.monotonic() + timeout_s
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
    late = [rank for rank, process in enumerate(processes) if process.is_alive()]
    for process in processes:
        process.kill()
        process.join()
    said = log.read_text(errors="replace")
    assert not late, f"ranks {late} of {script} took longer than {timeout_s:.0f} s:\n{said}"
    return next((p.exitcode for p in processes if p.exitcode), 0), said


def _rank(folder: Path, script: str, rank: int, ranks: int, port: int, log: Path) -> None:
    for name in [name for name in os.environ if name.startswith("INA_")]:
        del os.environ[name]
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(ranks),
        LOCAL_WORLD_SIZE=str(ranks),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        OMP_NUM_THREADS="1",
    )
    import torch

    torch.set_num_threads(1)
    os.chdir(folder)
    with log.open("ab", buffering=0) as out:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(out.fileno(), stream.fileno())
    sys.argv = [script]
    sys.path.insert(0, str(folder))
    runpy.run_path(script, run_name="__main__")
