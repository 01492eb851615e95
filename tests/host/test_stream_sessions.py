"""Sessions of jobs of mode `stream`, through the controller and its program in the soft switch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from ina.controller.embedded import Embedded
from ina.errors import InaError, InvalidInputError
from ina.host import Session
from ina.host.options import USUAL, WorkerOptions
from ina.p4 import names
from tests.host.sums import reduce_all
from tests.worlds.fakes.udp_model import closing

VALUES = 64
BLOCK = VALUES - 1


@contextmanager
def workers(
    count: int, options: WorkerOptions = USUAL, loss: float = 0.0
) -> Iterator[list[Session]]:
    with Embedded(
        values=VALUES, loss_rate=loss, loss_seed=count, mode=names.STREAM, shm=True
    ) as embedded:
        with ThreadPoolExecutor(count) as pool:
            address = embedded.controller_addr
            sessions = list(
                pool.map(
                    lambda rank: Session.join(address, "test", rank, count, options), range(count)
                )
            )
        with closing(sessions):
            yield sessions


def sparse(seed: int, count: int, density: float, dtype: Any) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    blocks = 300
    parts = rng.integers(-1000, 1000, (count, blocks, BLOCK)).astype(dtype)
    parts[rng.random((count, blocks)) >= density] = 0
    return [part.reshape(-1)[:-5].copy() for part in parts]


def sent_blocks(parts: Sequence[np.ndarray[Any, Any]]) -> int:
    return len({int(at) // BLOCK for part in parts for at in np.flatnonzero(part)})


@pytest.mark.parametrize("transport", ["udp", "shm"])
@pytest.mark.parametrize(("count", "loss"), [(2, 0.0), (3, 0.03)])
def test_sums_of_any_density(transport: Any, count: int, loss: float) -> None:
    with workers(count, WorkerOptions(transport=transport), loss) as sessions:
        assert sessions[0].ticket.mode == names.STREAM
        for seed, density in enumerate((0.0, 0.05, 0.4, 1.0)):
            for dtype in (np.int32, np.float32):
                parts = sparse(seed, count, density, dtype)
                exact = np.sum(parts, axis=0, dtype=dtype)
                for result in reduce_all(sessions, parts):
                    np.testing.assert_array_equal(result, exact)


def test_what_is_zero_on_all_ranks_costs_nothing() -> None:
    with workers(2, WorkerOptions(slots=16)) as sessions:
        parts = sparse(1, 2, 0.1, np.int32)
        before = [session.stats().chunks_done for session in sessions]
        reduce_all(sessions, parts)
        lanes = sessions[0].ticket.lanes
        for session, was in zip(sessions, before, strict=True):
            assert session.stats().chunks_done - was <= sent_blocks(parts) + lanes
        assert sent_blocks(parts) + lanes < 100


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"wire": "16"}, "mode 'stream', wire=16: values travel in whole words"),
        ({"recoverable": True}, "mode 'stream', recoverable=True"),
        ({"verify": "accidents"}, "mode 'stream', verify 'accidents'"),
    ],
)
def test_what_the_mode_has_not_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InaError, match=said), workers(1, WorkerOptions(**options)):
        pass


def test_one_call_cannot_ask_for_packed_words_either() -> None:
    with workers(1) as (session,), pytest.raises(InvalidInputError, match="wire=8"):
        session.all_reduce(np.zeros(10, np.float32), wire="8")
