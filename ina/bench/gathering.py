"""Ranks of several jobs that wait for each other, and tell rank 0 what they counted: by sums."""

from __future__ import annotations

import json
import os
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ina.host import Session, WorkerOptions
from ina.host.wishes import Wishes
from ina.p4.names import DEFAULT_MODE

TIMEOUT_S = 300.0
"""Of a join, of waiting for other jobs' slots, and of each sum."""
_SLOTS = 16
_JOB = "everyone"

Rows: TypeAlias = npt.NDArray[np.int32]


def joined(
    job: str, rank: int, workers: int, slots: int, *, mode: str = DEFAULT_MODE, tenant: str = ""
) -> Session:
    """A session over UDP at the environment's controller; ``slots``: both versions of them.

    Where they are not free it waits for them. Raises InaError.
    """
    return Session.join(
        os.environ["INA_CONTROLLER"],
        job,
        rank,
        workers,
        WorkerOptions(
            slots=slots,
            host=os.environ.get("INA_HOST"),
            tenant=tenant,
            transport="udp",
            threads=1,
            mode=mode,
            wishes=Wishes(queue_s=TIMEOUT_S),
            timeout_s=TIMEOUT_S,
            op_timeout_s=TIMEOUT_S,
        ),
    )


class Gathering:
    """A job of its own, of all ranks. A context manager."""

    def __init__(self, rank: int, workers: int) -> None:
        self.rank = rank
        self.workers = workers
        self._session = joined(_JOB, rank, workers, _SLOTS)

    @classmethod
    def of_all(cls) -> Gathering:
        """By RANK and WORLD_SIZE."""
        return cls(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))

    def __enter__(self) -> Gathering:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def tell(self, found: object) -> None:
        """Rank 0 prints a dataclass as a line of JSON; the others do not."""
        if self.rank == 0:
            print(json.dumps(vars(found)), flush=True)

    def wait(self) -> None:
        """Until all ranks do."""
        self.gather([0])

    def gather(self, numbers: list[int]) -> Rows:
        """Everybody's, a row each: as many of everybody, below 2^31."""
        rows = np.zeros((self.workers, len(numbers)), np.int32)
        rows[self.rank] = numbers
        return self._session.all_reduce(rows)
