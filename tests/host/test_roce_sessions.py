"""Sessions of jobs of modes `roce` and `transparent`, through the controller and its program."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from ina.controller.embedded import Embedded
from ina.errors import InaError
from ina.host import Session
from ina.host.options import WorkerOptions
from ina.p4 import names
from ina.p4.builds import builds_of
from ina.testing import numerics
from tests.host.sums import reduce_all
from tests.worlds.fakes.udp_model import closing
from tests.worlds.parts import random_parts


@contextmanager
def workers(
    count: int, options: WorkerOptions, values: int = 56, loss: float = 0.0, mode: str = names.ROCE
) -> Iterator[list[Session]]:
    with Embedded(values=values, loss_rate=loss, loss_seed=count, mode=mode, shm=True) as embedded:
        with ThreadPoolExecutor(count) as pool:
            address = embedded.controller_addr
            sessions = list(
                pool.map(
                    lambda rank: Session.join(address, "test", rank, count, options), range(count)
                )
            )
        with closing(sessions):
            yield sessions


@pytest.mark.parametrize("mode", [names.ROCE, names.TRANSPARENT])
@pytest.mark.parametrize(
    "values",
    [it if it == 248 else pytest.param(it, marks=pytest.mark.long) for it in builds_of(names.ROCE)],
)
@pytest.mark.parametrize(("count", "loss"), [(2, 0.0), (4, 0.03)])
def test_sums_have_the_bits_of_plain_udp(mode: str, values: int, count: int, loss: float) -> None:
    parts = {
        dtype: random_parts(np.dtype(dtype), count, values * 70 + 3, seed=count)
        for dtype in (np.int32, np.float32)
    }
    options = WorkerOptions(transport="roce-soft", mode=mode)
    with workers(count, options, values, loss, mode) as sessions:
        assert {session.ticket.mode for session in sessions} == {mode}
        assert {session.stats().transport for session in sessions} == {"roce-soft"}
        ours = {dtype: reduce_all(sessions, its) for dtype, its in parts.items()}
        stats = [session.stats() for session in sessions]
        assert [it.damaged_results for it in stats] == [0] * count
        assert [it.corrupted_sums for it in stats] == [0] * count
        assert mode != names.ROCE or any(it.losses for it in stats) == (loss > 0)
    for dtype, results in ours.items():
        for result in results:
            assert result.tobytes() == results[0].tobytes()
        if dtype == np.int32:
            np.testing.assert_array_equal(results[0], np.sum(parts[dtype], axis=0, dtype=np.int32))
        else:
            wanted = numerics.all_reduce(parts[dtype], "sum", values)
            assert numerics.same_bits(results[0], wanted)


def test_auto_is_this_process_where_there_is_no_device(caplog: pytest.LogCaptureFixture) -> None:
    with workers(1, WorkerOptions(mode=names.ROCE)) as (session,):
        assert session.stats().transport == "roce-soft"
    assert "RoCEv2 in software" in caplog.text


@pytest.mark.parametrize(
    ("mode", "options", "said"),
    [
        (
            names.ROCE,
            {"mode": names.ROCE, "transport": "udp"},
            "'udp', and the job has mode 'roce'",
        ),
        (names.POOL, {"mode": names.POOL, "transport": "roce-soft"}, "whose packets go by udp or"),
        (names.POOL, {"transport": "roce-soft"}, "runs the program of mode 'pool'"),
        (names.ROCE, {"mode": names.POOL}, "runs the program of mode 'roce'"),
    ],
)
def test_what_does_not_go_together_is_said(mode: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InaError, match=said), workers(1, WorkerOptions(**options), 0, mode=mode):
        pass
