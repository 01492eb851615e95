"""Ranks that reduce different things are found out by their heartbeats."""

from __future__ import annotations

from concurrent import futures

import numpy as np
import pytest

from ina.controller.agreement import disagreement
from ina.controller.embedded import Embedded
from ina.host import JobEndedError, Session
from ina.rpc.controller_pb2 import Operation, Progress


def report(*digests: int, oldest: Operation | None = None) -> Progress:
    return Progress(digests=digests, oldest=oldest)


BIG, SMALL = (
    Operation(number=9, elems=64, value_type=1),
    Operation(number=9, elems=32, average=True),
)


def test_ranks_that_agree_so_far() -> None:
    assert disagreement({}) is None
    assert disagreement({0: report()}) is None
    assert disagreement({0: report(5, 6, 7), 1: report(5, 6), 2: report()}) is None
    assert disagreement({0: report(5, oldest=BIG), 1: report(5, oldest=BIG)}) is None
    later = Operation(number=10, elems=1)
    assert disagreement({0: report(5, oldest=BIG), 1: report(5, oldest=later)}) is None


def test_the_first_operations_that_differ() -> None:
    assert disagreement({0: report(5, 6, 7), 1: report(5, 8), 3: report(5, 6, 9)}) == (
        "the ranks disagree on sizes, dtypes or reductions among their first 2 operations: "
        "ranks 0, 3 against rank 1"
    )


def test_the_operation_that_differs_is_told_exactly() -> None:
    reports = {2: report(5, oldest=SMALL), 0: report(5, oldest=BIG), 1: report(4, oldest=BIG)}
    assert disagreement(reports) == (
        "the ranks disagree on operation 9: ranks 0, 1: sum of 64 float32; rank 2: avg of 32 int32"
    )


@pytest.mark.parametrize("elems", [310, 400])  # as many chunks as 300 have, or more
def test_workers_of_a_real_job_are_told(elems: int) -> None:
    with Embedded(values=64) as embedded, futures.ThreadPoolExecutor(2) as pool:
        joining = [
            pool.submit(Session.join, embedded.controller_addr, "differ", rank, 2)
            for rank in range(2)
        ]
        sessions = [future.result(60) for future in joining]
        try:
            for session, length in zip(sessions, (300, elems), strict=True):
                session.all_reduce(np.ones(length, np.int32), async_op=True)
            later = sessions[0].all_reduce(np.ones(9, np.float32), async_op=True)
            with pytest.raises(JobEndedError, match=r"the ranks disagree on"):
                later.wait(60)
        finally:
            for session in sessions:
                session.close()
