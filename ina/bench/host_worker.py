"""One rank that keeps a switch busy, without torch: ELEMS SECONDS. Each rank prints a JSON line.

Place and controller come from the environment, as ``ina emulate run`` sets it.
"""

from __future__ import annotations

import json
import os
import sys
import time

import numpy as np

from ina.host import Session, WorkerOptions

_IN_FLIGHT = 2
_GO_ON = 1
_TIMEOUT_S = 120.0  # of the join, and of each sum


def main() -> None:
    """Sums arrays of int32 until rank 0's time is over; all ranks learn that from a sum."""
    elems, seconds = int(sys.argv[1]), float(sys.argv[2])
    rank, workers = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    with Session.join(
        os.environ["INA_CONTROLLER"],
        os.environ.get("INA_JOB", "bench-switch"),
        rank,
        workers,
        WorkerOptions(
            timeout_s=_TIMEOUT_S,
            host=os.environ.get("INA_HOST"),
            op_timeout_s=_TIMEOUT_S,
            transport="udp",
        ),
    ) as session:
        numbers = np.arange(elems, dtype=np.int32) % 1000
        array, results = numbers + rank, [np.empty(elems, np.int32) for _ in range(_IN_FLIGHT)]
        wanted = numbers * workers + workers * (workers - 1) // 2
        wanted[0] = 0  # the place of the word that says whether to go on
        wrong, rounds = 0, 0
        started, before = time.perf_counter(), session.stats()
        going = True
        while going:
            array[0] = _GO_ON if rank == 0 and time.perf_counter() - started < seconds else 0
            handles = [session.all_reduce(array, out=result, async_op=True) for result in results]
            for handle in handles:
                handle.wait()
            rounds += 1
            if rounds == 1:  # the warm-up
                started, before = time.perf_counter(), session.stats()
            going = results[0][0] == _GO_ON
            if rounds == 1 or not going:
                for result in results:
                    result[0] = 0
                    wrong += int((result != wanted).sum())
        passed = time.perf_counter() - started
        sent = session.stats().packets_sent - before.packets_sent
        in_all = session.stats().packets_sent
    said = {"packets": sent, "packets_in_all": in_all, "seconds": passed, "wrong": wrong}
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
