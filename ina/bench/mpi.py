"""Open MPI as a peer, on one host, where ``mpirun`` and mpi4py are installed."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence

from ina.bench.allreduce import AllReduceCase, AllReduceRow, make_measurement
from ina.bench.spread import spread
from ina.errors import DeadlineError, InaError

_START_UP_S = 60.0
_STOP_S = 10.0
_TYPES = ("float32", "int32")


def why_not(dtype: str) -> str:
    """Why it cannot be measured here with tensors of this type; empty: it can."""
    if dtype not in _TYPES:
        return f"MPI has no {dtype}"
    return _missing()


def _missing() -> str:
    missing = []
    if shutil.which("mpirun") is None:
        missing.append("mpirun (Debian: openmpi-bin)")
    if importlib.util.find_spec("mpi4py") is None:
        missing.append("mpi4py (pip install mpi4py)")
    return f"no {' and no '.join(missing)}" if missing else ""


def _run(command: Sequence[str], workers: int, timeout_s: float) -> str:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise DeadlineError(f"mpirun with {workers} workers: not done in {timeout_s:g} s") from None
    finally:
        if process.poll() is None:  # its workers are in its session: SIGTERM makes it end them
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(_STOP_S)
    if process.returncode:
        said = err.strip().splitlines()
        raise InaError(f"mpirun with {workers} workers: {said[-1] if said else 'no output'}")
    return out


def measure(
    workers: int, sizes: Sequence[int], case: AllReduceCase, others: Sequence[AllReduceRow]
) -> list[AllReduceRow]:
    """All sizes. ``others`` have Gloo's times.

    Raises :class:`InaError` (mpirun failed) and :class:`DeadlineError`.
    """
    command = [
        *("mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(workers)),
        *(["--allow-run-as-root"] if os.geteuid() == 0 else []),
        *(sys.executable, "-m", "ina.bench.mpi_worker", case.dtype, case.op),
        *(str(case.repeats), str(case.seconds), *map(str, sizes)),
    ]
    timeout_s = _START_UP_S + len(sizes) * (3 * case.seconds + 10)
    out = _run(command, workers, timeout_s)
    gloo = {
        row.size_bytes: row.time_s
        for row in others
        if row.backend == "gloo" and row.workers == workers
    }
    rows = []
    for line in out.splitlines():
        record = json.loads(line)
        size = record["count"] * case.dtype_bytes
        rows.append(
            make_measurement(
                workers=workers,
                backend="mpi",
                count=record["count"],
                times=spread(record["times_s"]),
                wrong=record["wrong"],
                limit_s=None,
                gloo_s=gloo.get(size),
                cpu_s=spread(record["cpu_s"]).median,
                transport="mpi",
                case=case,
            )
        )
    return rows
