"""One worker process in a host: sums arrays that every rank can work out, and checks each sum.

Arguments: CONTROLLER RANK PLAN, a tests.sharing.worker.Plan as JSON. Prints a line a step, and at
the end a line of JSON: a hash of all results, and what the session counted.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from dataclasses import asdict

from ina.errors import InaError
from ina.host import Session
from tests.sharing.worker import JOIN_TIMEOUT_S, OP_TIMEOUT_S, Plan, check

WRONG, FAILED = 4, 3


def main(controller: str, rank: int, text: str) -> int:
    """0: every sum right; FAILED: a typed error, printed; WRONG: a wrong sum."""
    plan = Plan.load(text)
    digest = hashlib.sha256()
    try:
        with Session.join(
            *(controller, plan.name, rank, plan.world_size),
            timeout_s=JOIN_TIMEOUT_S,
            op_timeout_s=OP_TIMEOUT_S,
        ) as session:
            print("joined", flush=True)
            for step, float_step in enumerate(plan.floats):
                own = plan.values(step, rank)
                result = session.all_reduce(own.astype("float32") if float_step else own)
                if not check(plan, step, result):
                    print(f"WRONG {plan.name} rank {rank} step {step}", flush=True)
                    return WRONG
                digest.update(result.tobytes())
                print(f"step {step} of {len(plan.floats)}", flush=True)
                time.sleep(plan.pause_s)
            done = {"sha256": digest.hexdigest(), "stats": asdict(session.stats())}
    except InaError as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return FAILED
    print(json.dumps(done), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
