"""A job whose workers are members of a controller that tests play."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from typing import Any

import numpy as np

from ina.host import Session, WorkerOptions
from tests.worlds.fakes.controller import FakeController
from tests.worlds.fakes.udp_model import UdpModel, closing

ONES = np.ones(100, np.int32)


@contextmanager
def job(
    workers: int = 2, *, lease_s: float = 60.0, heartbeat_s: float = 0.05, **options: Any
) -> Iterator[tuple[FakeController, list[Session]]]:
    """A job of so many workers, joined, each holding its stream of events."""
    with (
        UdpModel() as switch,
        FakeController(switch, lease_s=lease_s, heartbeat_s=heartbeat_s) as fake,
        futures.ThreadPoolExecutor(workers) as pool,
    ):
        joining = [
            pool.submit(
                Session.join, fake.address, "digits", rank, workers, WorkerOptions(**options)
            )
            for rank in range(workers)
        ]
        with closing([future.result(60) for future in joining]) as sessions:
            fake.until(lambda: len(fake.watching) == len(fake.progress) == workers)
            yield fake, sessions


def reduce_all(sessions: list[Session]) -> None:
    handles = [session.all_reduce(ONES, async_op=True) for session in sessions]
    for handle in handles:
        assert (handle.wait(30) == len(sessions)).all()
