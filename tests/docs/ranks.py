"""The ranks of ``torchrun --nproc-per-node N SCRIPT``, as forks of a process that has its imports.

torchrun takes a second to bring ranks together. So in ``make test`` the scripts of the pages run in
forks with the environment that it gives. On the page that says how torchrun starts them it does so,
as a fork that starts forks; in ``make test-long`` everywhere, by interpreters of their own.
"""

from __future__ import annotations

import ctypes
import os
import re
import runpy
import shlex
import socket
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.docs.page import Block
from tests.selection import LONG
from tests.worlds.processes.forks import context

_COMMAND = re.compile(
    r"((?:INA_\w+=\S+ )*)torchrun (?:--standalone )?--nproc-per-node (\d+) (\S+\.py)(.*)\n"
)
_BY_TORCHRUN = "pytorch.md"
_CLONE_NEWNET = 0x4000_0000


class Script(NamedTuple):
    """What a block has torchrun run."""

    environ: dict[str, str]
    ranks: int
    path: str
    arguments: list[str]


def script_of(block: Block) -> Script | None:
    """Where forks stand for torchrun."""
    found = _COMMAND.fullmatch(block.script)
    if found is None or LONG or block.page.name == _BY_TORCHRUN:
        return None
    environ = dict(word.split("=", 1) for word in found[1].split())
    return Script(environ, int(found[2]), found[3], shlex.split(found[4]))


def run(folder: Path, script: Script, network: Path | None, timeout_s: float) -> tuple[int, str]:
    """The first exit code that is not 0, and what all of them printed.

    ``network``: the file of the network namespace that they are in.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / f".{Path(script.path).name}.log"
    processes = [
        context.Process(target=_rank, args=(folder, script, rank, network, port, log))
        for rank in range(script.ranks)
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
    assert not late, f"ranks {late} of {script.path} took longer than {timeout_s:.0f} s:\n{said}"
    return next((p.exitcode for p in processes if p.exitcode), 0), said


def _rank(
    folder: Path, script: Script, rank: int, network: Path | None, port: int, log: Path
) -> None:
    for name in [name for name in os.environ if name.startswith("INA_")]:
        del os.environ[name]
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(script.ranks),
        LOCAL_WORLD_SIZE=str(script.ranks),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        OMP_NUM_THREADS="1",
        **script.environ,
    )
    if network is not None:
        _enter(network)
    import torch

    torch.set_num_threads(1)
    os.chdir(folder)
    with log.open("ab", buffering=0) as out:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(out.fileno(), stream.fileno())
    sys.argv = [script.path, *script.arguments]
    sys.path.insert(0, str((folder / script.path).parent))
    runpy.run_path(script.path, run_name="__main__")


def _enter(network: Path) -> None:
    """This thread, and those that it starts."""
    with network.open() as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns {network}")
