"""Runs a function in n real processes that form one default process group."""

from __future__ import annotations

import os
import pickle
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from ina import netns
from tests.worlds.processes.forks import context

Case = Callable[[int, int], Any]


def launch(
    case: Case,
    workers: int,
    folder: Path,
    *,
    environ: Mapping[str, str] | None = None,
    backend: str = "ina",
    deadline_s: float = 90.0,
    group_timeout_s: float = 40.0,
    destroy: bool = True,
) -> list[Any]:
    """``case(rank, workers)`` of every rank, in ranks' order; fails the test if one raises.

    ``environ`` are the workers' only INA_* variables. With ``destroy=False`` the workers end
    without destroy_process_group.
    """
    processes = start(
        case,
        workers,
        folder,
        environ=environ,
        backend=backend,
        group_timeout_s=group_timeout_s,
        destroy=destroy,
    )
    finish(processes, deadline_s)
    outcomes = [outcome(folder, rank) for rank in range(workers)]
    failures = [text for ok, text in outcomes if not ok]
    if failures:
        pytest.fail("\n".join(failures))
    codes = [process.exitcode for process in processes]
    assert codes == [0] * workers
    return [value for _, value in outcomes]


def start(
    case: Case,
    workers: int,
    folder: Path,
    *,
    environ: Mapping[str, str] | None = None,
    backend: str = "ina",
    group_timeout_s: float = 40.0,
    destroy: bool = True,
    hosts: Sequence[str] = (),
    spaces: Sequence[str] = (),
) -> list[BaseProcess]:
    """``hosts``: the address of each rank's host, where that makes a difference; ``spaces``: the
    network namespace that stands for it, where it is not this one."""
    folder.mkdir(exist_ok=True)
    processes: list[BaseProcess] = []
    for rank in range(workers):
        own = {"INA_HOST": hosts[rank]} if hosts else {}
        space = spaces[rank] if spaces else None
        process = context.Process(
            target=_work_in,
            args=(space, case, rank, workers, folder, {**(environ or {}), **own}),
            kwargs={"backend": backend, "group_timeout_s": group_timeout_s, "destroy": destroy},
        )
        process.start()
        processes.append(process)
    return processes


def finish(processes: list[BaseProcess], deadline_s: float) -> None:
    """Wait for all to end; kill them and fail the test at the deadline."""
    deadline = time.monotonic() + deadline_s
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
    late = [rank for rank, process in enumerate(processes) if process.is_alive()]
    for process in processes:
        process.kill()
        process.join(5)
    if late:
        pytest.fail(f"ranks {late} had not ended after {deadline_s:g} s")


def outcome(folder: Path, rank: int) -> tuple[bool, Any]:
    """(True, what the case returned) or (False, traceback)."""
    path = folder / f"outcome{rank}"
    if not path.exists():
        return False, f"rank {rank} left no outcome"
    result: tuple[bool, Any] = pickle.loads(path.read_bytes())
    return result


def _work_in(space: str | None, *args: Any, **kwargs: Any) -> None:
    with netns.inside(space):
        _work(*args, **kwargs)


def _work(
    case: Case,
    rank: int,
    workers: int,
    folder: Path,
    environ: dict[str, str],
    *,
    backend: str,
    group_timeout_s: float,
    destroy: bool,
) -> None:
    for name in [name for name in os.environ if name.startswith("INA_")]:
        del os.environ[name]
    os.environ.update(environ)
    import torch
    import torch.distributed as dist

    import ina.torch  # noqa: F401

    torch.set_num_threads(1)
    result: tuple[bool, Any]
    try:
        dist.init_process_group(
            backend,
            init_method=f"file://{folder}/store",
            rank=rank,
            world_size=workers,
            timeout=timedelta(seconds=group_timeout_s),
        )
        result = (True, case(rank, workers))
        if destroy:
            dist.destroy_process_group()
    except Exception:
        result = (False, f"rank {rank}: {traceback.format_exc()}")
    (folder / f"outcome{rank}.part").write_bytes(pickle.dumps(result))
    (folder / f"outcome{rank}.part").rename(folder / f"outcome{rank}")
