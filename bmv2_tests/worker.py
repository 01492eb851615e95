"""One worker process in a host: sums arrays that every rank can work out, and checks each sum.

Arguments: CONTROLLER RANK PLAN, a tests.worlds.processes.worker.Plan as JSON. Prints a line a step,
and at the end a line of JSON: a hash of all results, and what the session counted, in all and
(``early``) until the last sum of the first second.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ina.errors import InaError
from ina.host import Session, WorkerOptions
from tests.worlds.processes.worker import JOIN_TIMEOUT_S, OP_TIMEOUT_S, Plan, check

WRONG, FAILED = 4, 3
FIRST_S = 1.0


class WrongSumError(Exception):
    """Says which."""


def work(plan: Plan, rank: int, all_reduce: Callable[[NDArray[Any]], NDArray[Any]]) -> str:
    """A hash of all results; raises WrongSumError."""
    digest = hashlib.sha256()
    print("joined", flush=True)
    for step, float_step in enumerate(plan.floats):
        plan.wait(step)
        own = plan.values(step, rank)
        result = all_reduce(own.astype(np.float32) if float_step else own)
        if not check(plan, step, result):
            raise WrongSumError(f"{plan.name} rank {rank} step {step}")
        digest.update(result.tobytes())
        print(f"step {step} of {len(plan.floats)}", flush=True)
        time.sleep(plan.pause_s)
    return digest.hexdigest()


def status_of(main: Callable[[], dict[str, Any]]) -> int:
    """0: every sum right, and what ``main`` returned is printed; FAILED: a typed error, printed;
    WRONG: a wrong sum."""
    try:
        done = main()
    except WrongSumError as error:
        print(f"WRONG {error}", flush=True)
        return WRONG
    except InaError as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return FAILED
    print(json.dumps(done), flush=True)
    return 0


def main(controller: str, rank: int, text: str) -> dict[str, Any]:
    """The hash and the counters."""
    plan = Plan.load(text)
    with Session.join(
        *(controller, plan.name, rank, plan.world_size),
        options=WorkerOptions(timeout_s=JOIN_TIMEOUT_S, op_timeout_s=OP_TIMEOUT_S),
    ) as session:
        ends_s, early = time.monotonic() + FIRST_S, session.stats()

        def all_reduce(own: NDArray[Any]) -> NDArray[Any]:
            nonlocal early
            result = session.all_reduce(own)
            if time.monotonic() < ends_s:
                early = session.stats()
            return result

        digest = work(plan, rank, all_reduce)
        return {"sha256": digest, "stats": asdict(session.stats()), "early": asdict(early)}


if __name__ == "__main__":
    sys.exit(status_of(lambda: main(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
