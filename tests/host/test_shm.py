"""Sessions over shared memory with a soft switch in this process: sums, choice of path, deaths."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ina.controller.embedded import SHM_PORT, Embedded
from ina.errors import InvalidInputError
from ina.host import Session, WorkerOptions
from ina.host.errors import (
    SessionClosedError,
    SwitchLostError,
    TransportError,
    WorkerLostError,
)
from ina.modes.transports import TransportName
from ina.protocol.codec import Header, encode
from ina.protocol.spec import HEADER_BYTES, Kind
from ina.testing import numerics
from tests.host.sums import reduce_all
from tests.selection import LONG
from tests.switch.ports.conftest import wait_until
from tests.worlds.fakes.udp_model import closing
from tests.worlds.parts import random_parts
from tests.worlds.processes.shm_worker import ShmWorker

SHM_NAME = "shared memory"
LEASE = {"jobs": {"lease_s": 1}}
PATIENT = {"jobs": {"lease_s": 120}}  # 32 workers in one process, on a busy machine


@contextmanager
def sessions_of(embedded: Embedded, transports: Sequence[TransportName]) -> Iterator[list[Session]]:
    count = len(transports)

    def join(rank: int) -> Session:
        address = embedded.controller_addr
        return Session.join(address, "test", rank, count, WorkerOptions(transport=transports[rank]))

    with ThreadPoolExecutor(count) as pool:
        sessions = list(pool.map(join, range(count)))
    with closing(sessions):
        yield sessions


@pytest.mark.parametrize(
    ("count", "loss"),
    itertools.product([1, 2, 4, 8, 32], [0.0, 0.05])
    if LONG
    else [(1, 0.05), (2, 0.0), (4, 0.05), (8, 0.0), (32, 0.05)],
)
def test_sums_are_exact(count: int, loss: float) -> None:
    values = 64 if count == 32 else 256
    dtypes: tuple[np.dtype[Any], ...] = (np.dtype(np.int32), *numerics.FLOATS)
    with (
        Embedded(
            values=values, loss_rate=loss, loss_seed=count, config=PATIENT, shm=True
        ) as embedded,
        sessions_of(embedded, ["auto"] * count) as sessions,
    ):
        assert {session.path for session in sessions} == {SHM_NAME}
        for dtype in dtypes:
            for length in (0, 1, values - 1, values + 1, 1003, 30_000 if LONG else 10_000):
                parts = random_parts(dtype, count, length)
                want = numerics.all_reduce(parts, "sum", values)
                for result in reduce_all(sessions, parts):
                    assert numerics.same_bits(result, want), (dtype, length)
        ports = embedded.switch.stats().ports
        shm = ports[SHM_PORT]
        assert shm.attached == count
        assert (shm.loss_in_packets + shm.loss_out_packets > 0) == (loss > 0)
        assert shm.broken_rings == shm.malformed_packets == shm.undeliverable_packets == 0
        assert all(port.rx_packets == 0 for number, port in ports.items() if number != SHM_PORT)


@pytest.mark.parametrize("loss", [pytest.param(0.0, marks=pytest.mark.long), 0.02])
def test_a_million_values(loss: float) -> None:
    with (
        Embedded(loss_rate=loss, loss_seed=1, config=PATIENT, shm=True) as embedded,
        sessions_of(embedded, ["shm"] * 3) as sessions,
    ):
        for dtype in (np.dtype(np.int32), np.dtype(np.float32)):
            parts = random_parts(dtype, 3, 1_000_003)
            want = numerics.all_reduce(parts, "sum", 256)
            for result in reduce_all(sessions, parts):
                assert numerics.same_bits(result, want)


def test_workers_of_one_job_may_differ() -> None:
    with (
        Embedded(values=64, shm=True) as embedded,
        sessions_of(embedded, ["shm", "udp", "auto"]) as sessions,
    ):
        paths = [session.path for session in sessions]
        assert (paths[0], paths[2]) == (SHM_NAME, SHM_NAME)
        assert paths[1].startswith("UDP 127.0.0.1:")
        assert [session.stats().transport for session in sessions] == ["shm", "udp", "shm"]
        parts = random_parts(np.dtype(np.int32), 3, 10_000)
        want = numerics.all_reduce(parts, "sum", 64)
        for result in reduce_all(sessions, parts):
            assert numerics.same_bits(result, want)


def test_a_worker_cannot_speak_for_another() -> None:
    """Who attaches gets an address of its own: with another's rank its packets are refused."""
    with (
        Embedded(values=64, shm=True) as embedded,
        sessions_of(embedded, ["shm", "shm"]) as sessions,
    ):
        intruder = ShmWorker(
            embedded.switch.shm_address(SHM_PORT)[1:], payload_bytes=HEADER_BYTES + 256
        )
        ticket = sessions[1].ticket
        forged = Header(
            kind=Kind.CONTRIBUTION,
            job=ticket.job,
            epoch=ticket.epoch & 0xFFFF,
            worker=1,
            value_count=64,
            contributors=2,
        )
        intruder.send(*(encode(replace(forged, slot=s, seq=s), [99] * 64) for s in range(60)))

        def strangers() -> int:
            counters = embedded.show().counters
            return sum(c.packets for c in counters if (c.name, c.label) == ("drops", "member"))

        wait_until(lambda: strangers() == 60, "all refused", 60.0)
        parts = random_parts(np.dtype(np.int32), 2, 10_000)
        for result in reduce_all(sessions, parts):
            assert numerics.same_bits(result, numerics.all_reduce(parts, "sum", 64))
        assert intruder.control(1, 0) == 0  # nothing was sent to it
        intruder.close()


def test_without_an_offer_auto_is_udp_and_shm_an_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ina.host")
    with Embedded(values=64) as embedded:
        with sessions_of(embedded, ["auto"]) as (session,):
            assert session.path.startswith("UDP 127.0.0.1:")
            assert (session.all_reduce(np.arange(100, dtype=np.int32)) == np.arange(100)).all()
        with pytest.raises(TransportError, match="the switch offers no shared memory"):
            Session.join(embedded.controller_addr, "other", 0, 1, WorkerOptions(transport="shm"))
        with pytest.raises(InvalidInputError, match="transport 'tcp': want auto, udp, shm"):
            Session.join(embedded.controller_addr, "other", 0, 1, WorkerOptions(transport="tcp"))  # type: ignore[arg-type]
    (line,) = [r.getMessage() for r in caplog.records if "reaches the switch" in r.getMessage()]
    assert line.startswith("job 'test' rank 0 of 1 reaches the switch over UDP 127.0.0.1:")
    chosen = ("window ", "64 values a packet", "1 thread;", "receive buffer ", "epoch 1", "ina 0")
    assert all(words in line for words in (*chosen, f"controller {embedded.controller_addr}"))


def test_a_switch_on_another_host_is_reached_over_udp(caplog: pytest.LogCaptureFixture) -> None:
    """As seen from another host, nobody is at the abstract address."""
    caplog.set_level(logging.INFO, "ina.host")
    with Embedded(values=64, config={"switch": {"data_shm": "@ina-nobody"}}) as embedded:
        with sessions_of(embedded, ["auto"]) as (session,):
            assert session.path.startswith("UDP 127.0.0.1:")
        assert "nobody is there on this host" in caplog.text
        with pytest.raises(TransportError, match="@ina-nobody: nobody is there on this host"):
            Session.join(embedded.controller_addr, "other", 0, 1, WorkerOptions(transport="shm"))


def test_a_switch_that_stops_is_lost() -> None:
    with (
        Embedded(values=64, config=LEASE, shm=True) as embedded,
        sessions_of(embedded, ["shm", "shm"]) as sessions,
    ):
        handle = sessions[0].all_reduce(np.ones(1000, np.int32), async_op=True)
        embedded.switch.stop()
        with pytest.raises(SwitchLostError, match="the switch is gone"):
            handle.wait(60)
        assert sessions[0].stats().icmp_errors > 0


_WORKER = """
import sys, numpy as np
from ina.host import Session, WorkerOptions
session = Session.join(sys.argv[1], "test", 1, 2, WorkerOptions(transport="shm"))
print("joined", flush=True)
while True:
    session.all_reduce(np.ones(1000, np.int32))
"""


def reduce_for_ever(session: Session) -> None:
    while True:
        session.all_reduce(np.ones(1000, np.int32))


def test_a_worker_that_is_killed_is_dropped_and_named() -> None:
    with Embedded(values=64, config=LEASE, shm=True) as embedded:
        worker = subprocess.Popen([sys.executable, "-c", _WORKER, embedded.controller_addr])
        try:
            with Session.join(
                embedded.controller_addr, "test", 0, 2, WorkerOptions(transport="shm")
            ) as session:
                for _ in range(20):
                    assert (session.all_reduce(np.ones(1000, np.int32)) == 2).all()
                worker.send_signal(signal.SIGKILL)
                with pytest.raises(WorkerLostError) as caught:
                    reduce_for_ever(session)
                assert caught.value.ranks == (1,)
                assert embedded.switch.stats().ports[SHM_PORT].attached == 1
        finally:
            worker.kill()
            worker.wait()


def test_a_forked_child_does_no_harm() -> None:
    with (
        Embedded(values=64, shm=True) as embedded,
        sessions_of(embedded, ["shm"]) as (session,),
    ):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                session.all_reduce(np.ones(10, np.int32))
            except SessionClosedError:
                session.close()
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert (session.all_reduce(np.ones(10_000, np.int32)) == 1).all()


def test_a_session_leaves_nothing_open() -> None:
    def memory_fds() -> int:
        links = []
        for fd in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                links.append(os.readlink(f"/proc/self/fd/{fd}"))
        return sum("ina-shm" in link for link in links)

    with Embedded(values=64, shm=True) as embedded:
        for _ in range(3):
            with sessions_of(embedded, ["shm"]) as (session,):
                session.all_reduce(np.ones(10, np.int32))
                # The worker's, where the switch has only its mapping, and that of results, twice.
                assert memory_fds() == 3
            assert memory_fds() == 1
        wait_until(lambda: embedded.switch.stats().ports[SHM_PORT].attached == 0, "dropped", 60.0)
    assert memory_fds() == 0
