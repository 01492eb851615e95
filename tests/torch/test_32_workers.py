"""The largest group at one switch: 32 sessions of a job in one process, over the embedded one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ina.controller.embedded import Embedded
from ina.host import Session, WorkerOptions
from ina.host.errors import ControllerError
from tests.torch.bound import sum_and_bound

_WORKERS = 32
_LENGTHS = (0, 1, 255, 256, 257, 200_003)  # the last: each of 512 slots more than once
_DEADLINE_S = 60.0


@pytest.mark.parametrize("loss_rate", [pytest.param(0.0, marks=pytest.mark.long), 0.05])
def test_32_workers(loss_rate: float) -> None:
    generator = np.random.default_rng(32)
    integers = [
        generator.integers(-(2**31), 2**31, (_WORKERS, elems), dtype=np.int64).astype(np.int32)
        for elems in _LENGTHS
    ]
    floats = [generator.standard_normal((_WORKERS, elems)).astype(np.float32) for elems in _LENGTHS]
    with Embedded(loss_rate=loss_rate, loss_seed=1) as embedded:

        def work(rank: int) -> list[np.ndarray]:
            with Session.join(
                embedded.controller_addr,
                "wide",
                rank,
                _WORKERS,
                WorkerOptions(timeout_s=_DEADLINE_S),
            ) as session:
                handles = [
                    session.all_reduce(inputs[rank], async_op=True) for inputs in integers + floats
                ]
                return [handle.wait(_DEADLINE_S) for handle in handles]

        with ThreadPoolExecutor(_WORKERS) as pool:
            results = list(pool.map(work, range(_WORKERS), timeout=2 * _DEADLINE_S))
        stats = embedded.switch.stats()
    assert (stats.loss_in_packets > 0) == (loss_rate > 0)
    for index, inputs in enumerate(integers):
        total = inputs.sum(axis=0, dtype=np.int32)
        assert all(np.array_equal(result[index], total) for result in results)
    for index, numbers in enumerate(floats, start=len(integers)):
        exact, bound = sum_and_bound(numbers.astype(np.float64), 256, "float32")
        assert all(np.array_equal(result[index], results[0][index]) for result in results)
        assert (np.abs(results[0][index] - exact) <= bound).all()


def test_33_workers_are_refused_by_the_controller_of_one_switch() -> None:
    with (
        Embedded(values=64) as embedded,
        pytest.raises(ControllerError, match=r"33 workers: one switch sums 1 to 32 "),
    ):
        Session.join(embedded.controller_addr, "wide", 0, 33, WorkerOptions(timeout_s=5))
