"""Many short jobs whose processes must end: ``python -m tests.host.short_jobs HOST:PORT JOBS``.

Each job has two workers, forks of this process (which saves their imports) that end as any program
does, with the interpreter's whole finalisation. All share one core and change threads all the time,
which brings out what depends on where gRPC's threads are when it begins. Prints as JSON which
workers failed, and which had not ended after DEADLINE_S; these are killed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time

import numpy as np

from ina.host import Session, WorkerOptions

DEADLINE_S = 60.0
"""For both workers of a job. On a loaded machine they take a second or two."""
WORKERS = 2


def work(controller: str, job: str, rank: int) -> None:
    """One sum; then the ranks leave, not quite at once."""
    sys.setswitchinterval(1e-6)
    with Session.join(
        controller, job, rank, WORKERS, WorkerOptions(timeout_s=DEADLINE_S)
    ) as session:
        total = session.all_reduce(np.full(100, rank + 1, np.int32))
        assert (total == 3).all()
        time.sleep(random.Random(f"{job}.{rank}").choice((0.0, 0.0, 0.005, 0.02)))


def end_of(pid: int, deadline: float) -> int | None:
    """The exit code; None: it stayed, and was killed."""
    while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        if time.monotonic() >= deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return None
        time.sleep(0.005)
    return os.waitstatus_to_exitcode(ended[1])


def main(controller: str, jobs: int) -> None:
    """Returns in each worker, too."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    failed: list[str] = []
    stayed: list[str] = []
    for job in range(jobs):
        pids = []
        for rank in range(WORKERS):
            pid = os.fork()
            if pid == 0:
                return work(controller, f"short-{job}", rank)
            pids.append(pid)
        deadline = time.monotonic() + DEADLINE_S
        for rank, pid in enumerate(pids):
            code = end_of(pid, deadline)
            if code != 0:
                (stayed if code is None else failed).append(f"job {job} rank {rank}: {code}")
    print(json.dumps({"jobs": jobs, "failed": failed, "stayed": stayed}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
