"""Runs a script under torchrun in a subprocess: lines as they come, a deadline, nothing left."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ina.emulate.waiting import Waiting
from ina.errors import DeadlineError, InaError, MissingToolError

_STOP_S = 5.0
"""From SIGTERM, which torchrun passes on to its workers, to SIGKILL for whoever is left."""
_TAIL_LINES = 300
_LOOK_S = 1.0
_RANK_PREFIX = re.compile(r"^\[rank\d+\]: ")  # torch adds it once a process group is there


_DISTRIBUTIONS = {"sklearn": "scikit-learn"}
"""Where pip's name of a module is not its own. ina's extras have these packages, but who installed
ina from a file would have to name that file again."""


class WorkersFailedError(InaError):
    """torchrun exited with an error; the message holds the last line that explains it."""


def require(*modules: str) -> None:
    """Raise :class:`MissingToolError` if a module cannot be imported; does not import it."""
    missing = [
        _DISTRIBUTIONS.get(name, name) for name in modules if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise MissingToolError(
            f"{', '.join(missing)} not installed: pip install {' '.join(missing)}"
        )


def run(
    script: Path | str,
    arguments: Sequence[str],
    *,
    workers: int,
    environ: Mapping[str, str],
    timeout_s: float,
    on_line: Callable[[str], None],
) -> None:
    """Run ``script`` (a file, or ``-m`` style module name) with ``workers`` processes on this host.

    ``environ`` is added to this process's environment without its ``INA_*`` variables, of which
    only INA_CC is kept. ``on_line`` gets each line that a worker prints. Raises
    :class:`DeadlineError` after ``timeout_s`` and :class:`WorkersFailedError` if a worker fails.
    However it ends, no process is left.
    """
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(workers)]
    command += [str(script)] if isinstance(script, Path) else ["-m", script]
    process = subprocess.Popen(
        [*command, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=_environment(environ),
        start_new_session=True,  # Ctrl-C reaches this process alone, which then stops the others
    )
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    try:
        for line in _lines(process, workers, time.monotonic() + timeout_s):
            tail.append(line)
            on_line(line)
        code = process.wait(_STOP_S)
    except (TimeoutError, subprocess.TimeoutExpired):
        late = _names(ranks(process.pid)) or [f"torchrun (process {process.pid})"]
        raise DeadlineError(
            f"{script} with {workers} workers: not done after {timeout_s:g} s: {', '.join(late)}"
            f" (last line: {tail[-1] if tail else 'none'})"
        ) from None
    finally:
        _stop(process)
    if code != 0:
        raise WorkersFailedError(f"{script} with {workers} workers: {_explain(tail)}")


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("INA_") or name == "INA_CC"  # the compiler belongs to the machine
    }
    return clean | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"} | dict(extra)


def _lines(process: subprocess.Popen[str], workers: int, deadline: float) -> Iterator[str]:
    """Lines until the end of the output; raises TimeoutError at ``deadline`` (monotonic)."""
    lines: queue.Queue[str | None] = queue.Queue()
    stream = process.stdout
    assert stream is not None

    def read() -> None:
        for line in stream:
            lines.put(line.rstrip("\n"))
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    waiting = Waiting()
    while True:
        try:
            line = lines.get(timeout=max(0.0, min(_LOOK_S, deadline - time.monotonic())))
        except queue.Empty:
            if time.monotonic() >= deadline:
                raise TimeoutError from None
            running = ranks(process.pid)
            ended = [f"rank {rank}" for rank in range(workers) if rank not in running]
            waiting.look(ended, _names(running))
            continue
        if line is None:
            return
        yield line


def _stop(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        # The workers are in sessions of their own: note who they are while their parent lives.
        family = descendants(process.pid)
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_STOP_S)
        for pid, started in family:
            if start_time(pid) == started:
                os.kill(pid, signal.SIGKILL)
    if process.stdout is not None:
        process.stdout.close()


def descendants(pid: int) -> list[tuple[int, str]]:
    """(pid, start time) of all children, grandchildren, …; the time tells a reused pid apart."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            started = start_time(child)
            if started is not None:
                found.append((child, started))
                found += descendants(child)
    return found


def ranks(torchrun_pid: int) -> dict[int, int]:
    """Process ids of the workers that run, by rank."""
    found = {}
    for task in Path(f"/proc/{torchrun_pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has just ended
            for pid in map(int, task.read_text().split()):
                said = re.search(rb"(?:^|\0)RANK=(\d+)", Path(f"/proc/{pid}/environ").read_bytes())
                if said is not None and start_time(pid) is not None:
                    found[int(said[1])] = pid
    return dict(sorted(found.items()))


def _names(workers: Mapping[int, int]) -> list[str]:
    return [f"rank {rank} (process {pid})" for rank, pid in workers.items()]


def start_time(pid: int) -> str | None:
    """When the process started, as the kernel counts it; None if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # from field 3 of proc(5) on
    return None if fields[0] in "ZX" else fields[19]  # dead but not yet buried is ended


def _explain(tail: Sequence[str]) -> str:
    """The line that says most about a failure: the last that looks like an exception."""
    for line in reversed(tail):
        said = _RANK_PREFIX.sub("", line).strip()
        name, colon, _ = said.partition(": ")
        if colon and name.endswith("Error") and " " not in name and "ChildFailed" not in name:
            return said
    return tail[-1].strip() if tail else "no output"
