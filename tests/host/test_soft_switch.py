"""Sessions through the controller and the P4 program in the soft switch, over real sockets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from ina.controller.embedded import Embedded
from ina.host import Session
from ina.testing import numerics
from tests.host.sums import reduce_all
from tests.selection import LONG
from tests.worlds.fakes.udp_model import closing
from tests.worlds.parts import random_parts


@contextmanager
def workers(count: int, values: int, loss: float) -> Iterator[tuple[Embedded, list[Session]]]:
    with Embedded(values=values, loss_rate=loss, loss_seed=count) as embedded:
        with ThreadPoolExecutor(count) as pool:
            sessions = list(
                pool.map(
                    lambda rank: Session.join(embedded.controller_addr, "test", rank, count),
                    range(count),
                )
            )
        with closing(sessions):
            yield embedded, sessions


@pytest.mark.parametrize(
    ("count", "loss"),
    itertools.product([1, 2, 3, 8, 32], [0.0, 0.05])
    if LONG
    else [(1, 0.05), (2, 0.0), (3, 0.05), (8, 0.0), (32, 0.05)],
)
def test_every_dtype_and_length(count: int, loss: float) -> None:
    dtypes: tuple[np.dtype[Any], ...] = (np.dtype(np.int32), *numerics.FLOATS)
    with workers(count, 64 if count == 32 else 256, loss) as (_, sessions):
        values = sessions[0].ticket.values_per_packet
        for dtype in dtypes:
            for length in (0, 1, 255, 256, 257, 1003):
                parts = random_parts(dtype, count, length)
                want = numerics.all_reduce(parts, "sum", values)
                for result in reduce_all(sessions, parts):
                    assert numerics.same_bits(result, want), (dtype, length)


@pytest.mark.parametrize(
    ("count", "values", "loss"),
    [
        (*size, loss)
        for size in ((3, 64), (3, 256), (3, 360), (3, 1024), (32, 256))
        for loss in (0.0, 0.05)
    ]
    if LONG
    else [(3, 64, 0.05), (3, 256, 0.0), (3, 360, 0.0), (3, 1024, 0.05), (32, 256, 0.05)],
)
def test_many_values(count: int, values: int, loss: float) -> None:
    with workers(count, values, loss) as (embedded, sessions):
        for dtype in (np.dtype(np.int32), np.dtype(np.float32)):
            parts = random_parts(
                dtype, count, 1_000_003 if LONG else (250_003 if count == 3 else 50_003)
            )
            want = numerics.all_reduce(parts, "sum", values)
            for result in reduce_all(sessions, parts):
                assert numerics.same_bits(result, want)
        port = next(iter(embedded.switch.stats().ports.values()))
        lost = port.loss_in_packets + port.loss_out_packets
        assert (lost > 0) == (loss > 0)
        if loss:
            counts = [session.stats() for session in sessions]
            assert sum(stats.losses for stats in counts) > lost // 4
            for stats in counts:
                sorted_out = stats.losses + stats.spurious_resends + stats.probes
                assert stats.losses <= sorted_out <= stats.retransmissions
