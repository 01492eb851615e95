"""One rank of Open MPI's all-reduce: DTYPE OP REPEATS SECONDS SIZE... Rank 0 prints JSON lines."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

_WARM_UP = 2
_SAMPLE_S, _MAX_ITERATIONS = 0.25, 64


def _sample(comm: Any, mpi: Any, array: Any, average: bool, count: int) -> tuple[float, float]:
    """Seconds of the slowest rank and mean CPU seconds, for one operation."""
    out = np.empty_like(array)
    comm.Barrier()
    cpu, started = time.process_time(), time.perf_counter()
    for _ in range(count):
        comm.Allreduce(array, out)
        if average:
            np.divide(out, comm.size, out=out, casting="unsafe")
    passed, spent = time.perf_counter() - started, time.process_time() - cpu
    slowest = comm.allreduce(passed, mpi.MAX)
    return slowest / count, comm.allreduce(spent, mpi.SUM) / comm.size / count


def _wrong(comm: Any, mpi: Any, elems: int, dtype: str, average: bool) -> int:
    numbers = np.arange(elems, dtype=np.int64)
    modulus = (1 << 24) // comm.size
    array = ((numbers + comm.rank) % modulus).astype(dtype)
    out = np.empty_like(array)
    comm.Allreduce(array, out)
    wanted = sum((numbers + peer) % modulus for peer in range(comm.size))
    if average:
        np.divide(out, comm.size, out=out, casting="unsafe")
        wanted = np.divide(wanted, comm.size).astype(dtype)
    return int(comm.allreduce(int((out != np.asarray(wanted).astype(dtype)).sum()), mpi.SUM))


def main() -> None:
    """Every size: a check, a warm-up, samples."""
    from mpi4py import MPI

    dtype, op, repeats, seconds, *sizes = sys.argv[1:]
    comm, average = MPI.COMM_WORLD, op == "avg"
    for size in map(int, sizes):
        elems = max(1, size // np.dtype(dtype).itemsize)
        wrong = _wrong(comm, MPI, elems, dtype, average)
        array = np.ones(elems, dtype)
        for _ in range(_WARM_UP):
            time_s, _ = _sample(comm, MPI, array, average, 1)
        count = comm.bcast(max(1, min(_MAX_ITERATIONS, round(_SAMPLE_S / max(time_s, 1e-9)))))
        times_s: list[float] = []
        cpu_s: list[float] = []
        begun = time.perf_counter()
        while len(times_s) < int(repeats):
            took, spent = _sample(comm, MPI, array, average, count)
            times_s.append(took)
            cpu_s.append(spent)
            if comm.bcast(time.perf_counter() - begun > float(seconds) and len(times_s) >= 3):
                break
        if comm.rank == 0:
            record = {"count": elems, "times_s": times_s, "cpu_s": cpu_s, "wrong": wrong}
            print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
