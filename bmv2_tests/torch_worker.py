"""One rank of a torch group in a host that it may share with others: the same sums, checked.

Argument: PLAN, a tests.worlds.processes.worker.Plan as JSON; the rest is in the environment, as
torchrun would set it. Prints what bmv2_tests.worker prints, and how it reaches the switch.
"""

from __future__ import annotations

import logging
import os
import sys
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from numpy.typing import NDArray

from bmv2_tests.worker import status_of, work
from tests.worlds.processes.worker import JOIN_TIMEOUT_S, Plan


def main(text: str) -> dict[str, Any]:
    """The hash and the counters."""
    logging.basicConfig(level=logging.WARNING)
    torch.set_num_threads(1)
    dist.init_process_group("ina", timeout=timedelta(seconds=JOIN_TIMEOUT_S))

    def all_reduce(own: NDArray[Any]) -> NDArray[Any]:
        tensor = torch.from_numpy(own.copy())
        dist.all_reduce(tensor)
        total: NDArray[Any] = tensor.numpy()
        return total

    digest = work(Plan.load(text), int(os.environ["RANK"]), all_reduce)
    import ina.torch  # torch has found the backend by itself

    counted = ina.torch.stats()
    dist.destroy_process_group()
    return {"sha256": digest, "stats": counted.session}


if __name__ == "__main__":
    sys.exit(status_of(lambda: main(sys.argv[1])))
