"""Sessions whose transport has several threads, over real sockets."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from ina.controller.embedded import Embedded
from ina.errors import InaError, InvalidInputError
from ina.host import (
    OperationTimeoutError,
    Session,
    SessionClosedError,
    SessionFrozenError,
    SwitchLostError,
    WorkerOptions,
)
from ina.host.threads import wanted
from ina.testing import numerics
from tests.host.sums import recover, reduce_all
from tests.selection import LONG
from tests.worlds.fakes.tickets import direct_ticket
from tests.worlds.fakes.udp_model import UdpModel, closing
from tests.worlds.parts import INT32, random_parts

DTYPES: tuple[np.dtype[Any], ...] = (INT32, *numerics.FLOATS)
ONES = np.ones(300, np.int32)
ROUNDS = 300 if LONG else 100


@pytest.mark.parametrize("loss", [0.0, 0.05])
@pytest.mark.parametrize("threads", [[2], [2, 4], [4, 1, 8]], ids=str)
def test_all_dtypes_and_lengths(threads: list[int], loss: float) -> None:
    workers = len(threads)
    with (
        UdpModel(loss=loss, seed=workers) as switch,
        closing(switch.sessions(workers, threads=threads)) as sessions,
    ):
        assert [session.stats().threads for session in sessions] == threads
        for dtype in DTYPES:
            for length in (0, 1, 257, 64 * 70 + 3):
                for op in ("sum", "avg"):
                    parts = random_parts(dtype, workers, length)
                    want = numerics.all_reduce(parts, op, switch.values)
                    for result in reduce_all(sessions, parts, op):
                        assert numerics.same_bits(result, want), (dtype, length, op)
        for session in sessions:
            assert session.stats().operations_done == len(DTYPES) * 4 * 2
            assert session.stats().refused_results == 0


@pytest.mark.parametrize("loss", [0.0, 0.02])
@pytest.mark.parametrize("threads", [2, 4])
def test_through_the_soft_switch(threads: int, loss: float) -> None:
    with Embedded(loss_rate=loss, loss_seed=threads) as embedded:

        def join(rank: int) -> Session:
            own = threads if rank else 1  # workers of one job may differ
            return Session.join(
                embedded.controller_addr, "test", rank, 2, WorkerOptions(threads=own)
            )

        with ThreadPoolExecutor(2) as pool:
            sessions = list(pool.map(join, range(2)))
        with closing(sessions):
            values = sessions[0].ticket.values_per_packet
            for dtype in (INT32, np.dtype(np.float32), np.dtype(np.float16)):
                parts = random_parts(dtype, 2, 300_003 if LONG else 100_003)
                want = numerics.all_reduce(parts, "sum", values)
                for result in reduce_all(sessions, parts):
                    assert numerics.same_bits(result, want)
            assert [session.stats().threads for session in sessions] == [1, threads]


@pytest.mark.parametrize("threads", [2, 4])
def test_many_small_sums_one_after_the_other(threads: int) -> None:
    """Each waits for the one before: a thread that is not woken would show as a time-out."""
    rounds = 400 if LONG else 100
    with UdpModel() as switch, closing(switch.sessions(2, threads=[threads, 1])) as sessions:

        def work(session: Session) -> int:
            wrong = 0
            for i in range(rounds):
                length = (1, 64, 65, 500)[i % 4]
                wrong += int((session.all_reduce(np.full(length, i, np.int32)) != 2 * i).sum())
            return wrong

        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(work, sessions)) == [0, 0]
        assert [s.stats().operations_done for s in sessions] == [rounds, rounds]


def test_tensors_that_a_share_has_no_part_in_reach_it() -> None:
    """One chunk each, on the same lanes again and again; then one on all lanes."""
    with UdpModel(slots=64) as switch, closing(switch.sessions(1, threads=[4])) as (session,):
        for i in range(ROUNDS):
            assert session.all_reduce(np.full(3, i, np.float32))[0] == i
        whole = np.arange(64 * 100, dtype=np.float32)
        assert (session.all_reduce(whole) == whole).all()
        assert session.stats().operations_done == ROUNDS + 1


def test_threads_may_share_a_session_with_threads() -> None:
    turns = 60 if LONG else 15
    with UdpModel(loss=0.01) as switch, closing(switch.sessions(1, threads=[4])) as (session,):

        def work(which: int) -> int:
            wrong = 0
            for i in range(turns):
                part = np.full((1, 700, 64, 5000)[(i + which) % 4], 1000 * which + i, np.int32)
                wrong += int((session.all_reduce(part) != part).sum())
            return wrong

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(work, range(4))) == [0] * 4
        stats = session.stats()
        assert stats.operations_done == 4 * turns
        assert stats.in_flight == 0


def test_statistics_are_of_all_shares() -> None:
    with UdpModel(slots=64) as switch, closing(switch.sessions(1, threads=[4])) as (session,):
        session.all_reduce(np.ones(64 * 100, np.int32))
        stats = session.stats()
        assert (stats.window, stats.threads, stats.chunks_done) == (32, 4, 100)
        assert stats.packets_sent == 100 + stats.retransmissions
        assert stats.bytes_done == 64 * 100 * 4
        assert stats.in_flight_limit == 32
        assert stats.srtt_ns > 0
        assert len(session._transport.lanes().seqs) == 32


def test_no_more_threads_than_packets_in_flight(caplog: pytest.LogCaptureFixture) -> None:
    with UdpModel(slots=4) as switch, closing(switch.sessions(1, threads=[8])) as (session,):
        assert session.stats().threads == 2
        assert (session.all_reduce(ONES) == 1).all()
    assert "2 of 8 threads on UDP" in caplog.text
    with UdpModel() as switch:
        ticket = switch.ticket(9, 1, 0, 1)
        with Session.direct(ticket, max_in_flight=1, options=WorkerOptions(threads=4)) as session:
            assert session.stats().threads == session.stats().in_flight_limit == 1


@pytest.mark.parametrize("asked", [0, 4])
def test_shared_memory_has_one_thread(
    asked: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)))
    caplog.set_level(logging.INFO, "ina.host")
    with (
        Embedded(shm=True) as embedded,
        Session.join(embedded.controller_addr, "j", 0, 1, WorkerOptions(threads=asked)) as session,
    ):
        assert (session.all_reduce(ONES) == 1).all()
        assert (session.stats().transport, session.stats().threads) == ("shm", 1)
    (said,) = [r for r in caplog.records if "1 of 4 threads on shared memory" in r.message]
    assert said.levelno == (logging.WARNING if asked else logging.INFO)


@pytest.mark.parametrize(
    ("cores", "workers", "threads"),
    [(1, 1, 1), (4, 1, 1), (7, 1, 1), (8, 1, 2), (8, 2, 1), (15, 1, 2), (16, 1, 4), (64, 1, 4),
     (64, 8, 2), (2, 8, 1), (16, 0, 4)],
)  # fmt: skip
def test_the_automatic_number(
    cores: int, workers: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(cores)))
    assert wanted(0, workers) == threads
    assert wanted(8, workers) == 8


@pytest.mark.parametrize("threads", [-1, 3, 16])
def test_numbers_that_are_refused(threads: int) -> None:
    with pytest.raises(InvalidInputError, match=rf"threads={threads}: want 1, 2, 4, 8, or 0"):
        Session.join("127.0.0.1:1", "j", 0, 1, WorkerOptions(threads=threads))
    with pytest.raises(InvalidInputError, match=rf"threads={threads}: want 1, 2, 4, 8, or 0"):
        Session.direct(
            direct_ticket("t", 1, 1, 0, 1, 4, 64, "127.0.0.1", 9),
            options=WorkerOptions(threads=threads),
        )


def test_a_missing_worker_is_reported() -> None:
    with (
        UdpModel() as switch,
        closing(switch.sessions(2, op_timeout_s=0.3, threads=[4, 1])) as sessions,
    ):
        reduce_all(sessions, random_parts(INT32, 2, 64 * 40))
        with pytest.raises(OperationTimeoutError, match=r"\(32 packets in flight.*another worker"):
            sessions[0].all_reduce(np.ones(64 * 40, np.int32))


def test_a_share_may_wait_longer_than_the_deadline_while_others_get_results() -> None:
    """As with one thread: the deadline is for no chunk at all."""
    op_timeout_s, step_s, count = 1.6, 0.15, 32
    with (
        UdpModel(slots=2 * count) as switch,
        closing(switch.sessions(2, op_timeout_s=op_timeout_s, threads=[2, 1])) as sessions,
    ):
        # One chunk each, so one lane each; the second half of the lanes is the second share's.
        part = np.ones(64, np.int32)
        early = [sessions[0].all_reduce(part, async_op=True) for _ in range(count)]
        late = []
        for i in range(count):
            late.append(sessions[1].all_reduce(part, async_op=True))
            if i < count // 2:
                time.sleep(step_s)
        for handle in (*early, *late):
            assert (handle.wait(30) == 2).all()


def test_no_switch_at_the_address() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    ticket = direct_ticket("test", 1, 1, 0, 1, 64, 64, "127.0.0.1", port)
    with Session.direct(ticket, options=WorkerOptions(op_timeout_s=0.3, threads=4)) as session:
        with pytest.raises(OperationTimeoutError, match=f"nothing listens .* 127.0.0.1:{port}"):
            session.all_reduce(np.ones(64 * 40, np.float32))
        assert session.stats().icmp_errors > 0


def test_operations_under_way_end_with_the_undisturbed_sums() -> None:
    left = 0
    for seed in range(8 if LONG else 4):
        with (
            UdpModel(slots=16, loss=0.05, seed=seed) as switch,
            closing(switch.sessions(2, recoverable=True, threads=[4, 1 + seed % 2])) as pair,
        ):
            inputs = [random_parts(DTYPES[i % 4], 2, 100 + 300 * i) for i in range(8)]
            ops = [("sum", "avg")[i % 2] for i in range(8)]
            wants = [numerics.all_reduce(p, op, 64) for p, op in zip(inputs, ops, strict=True)]
            handles = [
                [
                    session.all_reduce(parts[rank], op, out=parts[rank], async_op=True)
                    for parts, op in zip(inputs, ops, strict=True)
                ]
                for rank, session in enumerate(pair)
            ]
            handles[seed % 2][seed % 8].wait(30)
            plan = recover([session.freeze() for session in pair])
            left += sum(bool(entry.undone) for entry in plan.sums)
            for of_rank in handles:
                for handle, want in zip(of_rank, wants, strict=True):
                    assert numerics.same_bits(handle.wait(30), want)
    assert left > 0


def test_freezing_while_threads_submit() -> None:
    """Each submission is either in the export or was refused."""
    taken: list[int] = []
    with (
        UdpModel() as switch,
        closing(switch.sessions(2, recoverable=True, threads=[4, 1])) as (session, _),
    ):

        def submit() -> None:
            with contextlib.suppress(SessionFrozenError):
                while True:
                    session.all_reduce(ONES, async_op=True)
                    taken.append(1)

        submitters = [threading.Thread(target=submit) for _ in range(2)]
        for thread in submitters:
            thread.start()
        time.sleep(0.05)
        frozen = session.freeze()
        for thread in submitters:
            thread.join(30)
        assert len(taken) == frozen.export.submitted == len(frozen.export.pending)


def test_ends_that_race_leave_nothing_pending() -> None:
    """fail, freeze, close, submit and lanes at once: every operation ends, nothing hangs."""
    for turn in range(12 if LONG else 6):
        with UdpModel() as switch:
            session, other = switch.sessions(2, recoverable=True, threads=[4, 2])
            many = np.ones(64 * 200, np.int32)
            handles = [session.all_reduce(many, async_op=True) for _ in range(3)]
            beside = [other.all_reduce(many, async_op=True) for _ in range(3)]
            ready = threading.Barrier(4)

            def at_once(act: Callable[[], Any], ready: threading.Barrier = ready) -> None:
                ready.wait(30)
                with contextlib.suppress(InaError):
                    act()

            def end(session: Session = session, turn: int = turn) -> None:
                if turn % 3 == 0:
                    session.fail(SwitchLostError("registers lost"))
                elif turn % 3 == 1:
                    session.freeze()
                else:
                    session.close()

            acts: list[Callable[[], Any]] = [
                end,
                session.freeze if turn % 2 else session.close,
                session._transport.lanes,
                lambda session=session: session.all_reduce(ONES, async_op=True),  # type: ignore[misc]
            ]
            threads = [threading.Thread(target=at_once, args=(act,)) for act in acts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
                assert not thread.is_alive()
            session.close()
            other.close()
            assert all(handle.done() for handle in (*handles, *beside))


def test_close_ends_pending_operations() -> None:
    with UdpModel() as switch:
        sessions = switch.sessions(2, threads=[4, 1])
        handle = sessions[0].all_reduce(np.ones(9000, np.int32), async_op=True)
        called = threading.Event()
        handle.add_done_callback(lambda _: called.set())
        for session in sessions:
            session.close()
        assert called.is_set()
        with pytest.raises(SessionClosedError, match="is closed"):
            handle.wait()


def test_a_forked_child_cannot_use_the_session_and_does_no_harm() -> None:
    with UdpModel() as switch, closing(switch.sessions(1, threads=[4])) as (session,):
        session.all_reduce(ONES)
        child = os.fork()
        if child == 0:
            code = 1
            for _ in range(8):  # they get the memory of those that the fork left behind
                threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            try:
                session.all_reduce(ONES)
            except SessionClosedError:
                session.close()
                session.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        for _ in range(20):
            assert (session.all_reduce(np.ones(64 * 40, np.int32)) == 1).all()


@pytest.mark.parametrize("threads", [1, 4])
def test_what_no_thread_has_looked_at_is_pending_in_the_freeze(threads: int) -> None:
    """Freezing right behind a submission comes before the threads wake up, most times."""
    with UdpModel() as switch:
        for _ in range(20 if LONG else 8):
            with closing(switch.sessions(2, recoverable=True, threads=[threads, 1])) as (
                session,
                _other,
            ):
                session.all_reduce(ONES, async_op=True)
                (pending,) = session.freeze().export.pending
                assert pending.what.elems == ONES.size
                assert pending.undone == ((0, -(-ONES.size // switch.values)),)
