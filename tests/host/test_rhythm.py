"""How communication alternates with computation: what is counted of operations."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ina._native.host import Rhythm
from ina.controller.embedded import Embedded
from ina.host import Session, Wishes, WorkerOptions
from ina.host.progress import ProgressReporter


def test_time_with_operations_pending_and_of_that_the_end() -> None:
    rhythm = Rhythm()
    rhythm.submitted(100, 1000)
    rhythm.submitted(200, 1500)
    rhythm.ended(1, 1600)
    now = rhythm.counters(1700)
    assert (now.busy_ns, now.tail_ns) == (700, 200)
    rhythm.ended(1, 2000)
    rhythm.submitted(100, 5000)
    rhythm.ended(1, 5300)
    after = rhythm.counters(9000)
    assert (after.busy_ns, after.tail_ns) == (1000 + 300, 500 + 300)


@pytest.mark.parametrize(
    ("sizes", "length"),
    [
        ([5, 5, 5], 1),
        ([5, 5], 0),
        ([9, 9, 3, 9, 9, 3, 9, 9, 3], 3),
        ([1, 2, 9, 9, 3, 9, 9, 3, 9, 9, 3], 3),  # the first step had other buckets
        ([9, 9, 3, 9, 9, 3, 9, 9], 0),
        ([*range(300)] * 4, 300),
        ([*range(400)] * 4, 0),  # longer than is looked for
    ],
)
def test_a_step_is_what_comes_again(sizes: list[int], length: int) -> None:
    rhythm = Rhythm()
    for number, size in enumerate(sizes):
        rhythm.submitted(size, number)
    assert rhythm.counters(10_000).step_operations == length


def test_a_session_reports_it_with_what_the_job_said() -> None:
    wishes = Wishes(deadline_unix_s=8e9, steps=50)
    with (
        Embedded() as embedded,
        Session.join(
            embedded.controller_addr, "job", 0, 1, WorkerOptions(wishes=wishes)
        ) as session,
    ):
        for _ in range(6):
            for elems in (1000, 1000, 10):
                session.all_reduce(np.ones(elems, np.float32))
        told = ProgressReporter(session._transport, time.monotonic, wishes=wishes).report()
    assert told.step_operations == 3
    assert 0 < told.tail_s <= told.busy_s
    assert told.round_trip_s > 0
    assert (told.deadline_unix_s, told.steps) == (8e9, 50)
