"""Sessions over a queue pair each, of a device that is UDP sockets; functions named ``there_...``
run in a process that has it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest

from ina.controller.embedded import DATA_PORT, Embedded
from ina.host import Session, TransportError, rdma
from ina.host.options import WorkerOptions
from ina.p4 import names
from tests.host.sums import reduce_all
from tests.worlds.fakes.udp_model import closing
from tests.worlds.fakes.verbs import run_there
from tests.worlds.parts import random_parts

VALUES, WORKERS = 248, 3


@contextmanager
def workers(loss: float = 0.0, options: WorkerOptions | None = None) -> Iterator[list[Session]]:
    usual = WorkerOptions(transport="roce")
    # The device is sockets of this host, as the switch is.
    with (
        mock.patch.object(rdma, "why_no_wire", return_value=""),
        Embedded(values=VALUES, loss_rate=loss, mode=names.ROCE) as embedded,
    ):
        os.environ["FAKE_VERBS_SWITCH"] = str(embedded.switch.udp_address(DATA_PORT)[1])
        with ThreadPoolExecutor(WORKERS) as pool:
            sessions = list(
                pool.map(
                    lambda rank: Session.join(
                        embedded.controller_addr, "test", rank, WORKERS, options or usual
                    ),
                    range(WORKERS),
                )
            )
        with closing(sessions):
            yield sessions


def sums(sessions: list[Session]) -> None:
    parts = random_parts(np.dtype(np.int32), WORKERS, VALUES * 90 + 7)
    for _ in range(3):
        for result in reduce_all(sessions, parts):
            np.testing.assert_array_equal(result, np.sum(parts, axis=0, dtype=np.int32))


def there_sums_go_by_queue_pairs() -> None:
    with workers() as sessions:
        sums(sessions)
        for session in sessions:
            stats = session.stats()
            assert (stats.transport, stats.threads) == ("roce", 1)
            assert (stats.send_drops, stats.refused_results) == (0, 0)


def there_auto_takes_the_device_and_what_is_lost_is_sent_again() -> None:
    with workers(0.05, WorkerOptions(mode=names.ROCE)) as sessions:
        sums(sessions)
        assert {session.stats().transport for session in sessions} == {"roce"}
        assert sum(session.stats().losses for session in sessions) > 0


def there_a_link_says_what_is_wrong() -> None:
    """Without an address in RoCEv2, without a neighbour: one line, which says so."""
    for variable, value, says in (
        ("IPV4", "127.0.0.9", "no RDMA device has 127.0.0.1 as RoCEv2: fake0 has 127.0.0.9"),
        ("FAILS", "modify_qp", "nobody answers for the MAC address of 127.0.0.1 from fake0"),
        ("MTU", "2", "fake0 port 1 takes 512 bytes a packet"),
    ):
        os.environ[f"FAKE_VERBS_{variable}"] = value
        with pytest.raises(TransportError, match=says) as caught, workers():
            pass
        assert "\n" not in str(caught.value)
        del os.environ[f"FAKE_VERBS_{variable}"]


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(there_sums_go_by_queue_pairs, marks=pytest.mark.long),
        there_auto_takes_the_device_and_what_is_lost_is_sent_again,
        there_a_link_says_what_is_wrong,
    ],
)
def test_there(function) -> None:  # type: ignore[no-untyped-def]
    run_there(function)
