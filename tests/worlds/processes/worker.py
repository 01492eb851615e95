"""One worker process of the soak: sums arrays that every rank can work out, and checks each sum."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ina.errors import InaError
from ina.host import Session, WorkerOptions

OP_TIMEOUT_S = 60.0
JOIN_TIMEOUT_S = 60.0
HOLD_S = 60.0
MAX_ABS = 1 << 20


@dataclass(frozen=True)
class Plan:
    """A job: what its workers reduce, one after the other."""

    name: str
    world_size: int
    seed: int
    elems: tuple[int, ...]
    floats: tuple[bool, ...]
    pause_s: float
    held: tuple[int, str] | None = None  # before this step, until this file is there

    def dump(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, text: str) -> Plan:
        document = json.loads(text)
        document["elems"], document["floats"] = tuple(document["elems"]), tuple(document["floats"])
        document["held"] = document["held"] and tuple(document["held"])
        return cls(**document)

    def wait(self, step: int) -> None:
        """Where the plan holds its workers; for a minute at most, after which the job goes on."""
        if self.held is None or step != self.held[0]:
            return
        deadline_s = time.monotonic() + HOLD_S
        while not Path(self.held[1]).exists() and time.monotonic() < deadline_s:
            time.sleep(0.02)

    def values(self, step: int, rank: int) -> npt.NDArray[np.int32]:
        generator = np.random.default_rng([self.seed, step, rank])
        return generator.integers(-MAX_ABS, MAX_ABS, self.elems[step], dtype=np.int32)

    def total(self, step: int) -> npt.NDArray[np.int32]:
        ranks = range(self.world_size)
        total: npt.NDArray[np.int32] = sum(
            (self.values(step, rank) for rank in ranks), np.zeros(self.elems[step], np.int32)
        )
        return total


def check(plan: Plan, step: int, result: npt.NDArray[np.int32] | npt.NDArray[np.float32]) -> bool:
    """Integers exactly; floats within n/2 units of the scale of a block with values below 2^20."""
    total = plan.total(step)
    if not plan.floats[step]:
        return np.array_equal(result, total)
    unit = 2.0 ** (20 + np.ceil(np.log2(plan.world_size)) - 31)
    bound = plan.world_size / 2 * unit
    # The sum is rounded to 24 bits once more; below 2^23 that is half a unit at most.
    return bool(np.max(np.abs(result.astype(np.float64) - total), initial=0.0) <= bound + 0.5)


def main(controller: str, rank: int, text: str) -> int:
    """0: every sum right; 3: a typed error, printed; 4: a wrong sum."""
    plan = Plan.load(text)
    try:
        with Session.join(
            *(controller, plan.name, rank, plan.world_size),
            options=WorkerOptions(timeout_s=JOIN_TIMEOUT_S, op_timeout_s=OP_TIMEOUT_S),
        ) as session:
            print("joined", flush=True)
            for step, float_step in enumerate(plan.floats):
                own = plan.values(step, rank)
                result = session.all_reduce(own.astype(np.float32) if float_step else own)
                if not check(plan, step, result):
                    print(f"WRONG {plan.name} rank {rank} step {step}", flush=True)
                    return 4
                time.sleep(plan.pause_s)
    except InaError as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return 3
    print("done", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
