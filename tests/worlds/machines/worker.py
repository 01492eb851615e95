"""A worker in a machine: ``python -m tests.worlds.machines.worker JSON`` joins a job, sums, and
tells what came of it, a line each that begins with one of these words."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import sys
import time
from typing import Any

import numpy as np

from ina.errors import InaError
from ina.host import Session
from ina.host.options import WorkerOptions
from ina.host.rdma import RdmaPatience

JOINED, SUMMED, FAILED = "JOINED ", "SUMMED ", "FAILED "
"""With JSON behind: of the place that it has; of the sums; of the error that ended it."""
_SLOW_S = 0.05


@dataclasses.dataclass(frozen=True)
class Orders:
    """What it is to do; JSON's keys are the fields' names."""

    controller: str
    rank: int
    host: str | None
    transport: str
    mode: str = ""
    world_size: int = 2
    rounds: int = 4
    elements: int = 20_000
    for_ever: bool = False
    """Sums until something fails."""
    op_timeout_s: float = 120.0
    rdma_timeout_s: float = 4.0
    rdma_retries: int = 7
    late_s: float = 0.0
    """Before its first sum."""


def inputs(rank: int, number: int, elements: int) -> tuple[np.ndarray[Any, Any], ...]:
    """One rank's arrays of one round: integers that overflow, and floats of many sizes."""
    rng = np.random.default_rng((rank, number))
    integers = rng.integers(-(2**31), 2**31, elements, dtype=np.int32)
    floats = rng.standard_normal(elements, dtype=np.float32) * np.float32(10.0 ** (number - 2))
    return integers, floats


def exact(orders: Orders, number: int) -> np.ndarray[Any, Any]:
    """The sum of all ranks' integers."""
    parts = (inputs(rank, number, orders.elements)[0] for rank in range(orders.world_size))
    total = np.zeros(orders.elements, np.int32)
    for part in parts:
        total += part
    return total


def work(orders: Orders) -> None:
    """Raises InaError."""
    options = WorkerOptions(
        mode=orders.mode,
        host=orders.host,
        transport=orders.transport,  # type: ignore[arg-type]
        timeout_s=300.0,
        op_timeout_s=orders.op_timeout_s,
        rdma=RdmaPatience(orders.rdma_timeout_s, orders.rdma_retries),
    )
    with Session.join(orders.controller, "vm", orders.rank, orders.world_size, options) as session:
        own = session._link.own
        tell(JOINED, address=str(own.address), queue_pair=getattr(own, "queue_pair", 0))
        time.sleep(orders.late_s)
        digest, wrong, number = hashlib.sha256(), 0, 0
        while orders.for_ever or number < orders.rounds:
            integers, floats = inputs(orders.rank, number, orders.elements)
            wrong += int(np.count_nonzero(session.all_reduce(integers) != exact(orders, number)))
            digest.update(session.all_reduce(floats).tobytes())
            number += 1
            if orders.for_ever:
                refused = session.stats().refused_results
                tell(SUMMED, rounds=number, wrong=wrong, refused=refused)
                time.sleep(_SLOW_S)
        stats = dataclasses.asdict(session.stats())
    tell(SUMMED, rounds=number, wrong=wrong, floats=digest.hexdigest(), stats=stats)


def tell(word: str, **what: Any) -> None:
    """One line, at once."""
    print(word + json.dumps(what), flush=True)


def main() -> None:
    """Of the command."""
    logging.basicConfig(level=logging.INFO)
    began = time.monotonic()
    try:
        work(Orders(**json.loads(sys.argv[1])))
    except InaError as error:
        took_s = time.monotonic() - began
        tell(FAILED, error=type(error).__name__, text=str(error), took_s=took_s)


if __name__ == "__main__":
    main()
