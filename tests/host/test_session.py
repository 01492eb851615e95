"""Sessions over real UDP sockets against the reference switch model."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from ina.host import (
    Handle,
    InvalidArrayError,
    InvalidTicketError,
    OperationTimeoutError,
    RanksDifferError,
    Session,
    SessionClosedError,
    UnsupportedDtypeError,
    UnsupportedOpError,
    WorkerOptions,
    WorldSizeError,
)
from ina.host.calls import ticket_of
from ina.protocol.collective import Collective
from ina.protocol.peer import Peer
from ina.protocol.spec import ValueType
from ina.rpc import controller_pb2 as pb2
from ina.testing import numerics
from tests.host.sums import reduce_all
from tests.worlds.fakes.tickets import direct_ticket
from tests.worlds.fakes.udp_model import UdpModel, closing
from tests.worlds.parts import INT32, random_parts
from tests.worlds.processes import forks


@pytest.mark.parametrize("loss", [0.0, 0.05])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_all_dtypes_and_lengths(workers: int, loss: float) -> None:
    with UdpModel(loss=loss, seed=workers) as switch, closing(switch.sessions(workers)) as sessions:
        for dtype in (INT32, *numerics.FLOATS):
            for length in (0, 1, 255, 256, 257, 1003):
                for op in ("sum", "avg"):
                    parts = random_parts(dtype, workers, length)
                    want = numerics.all_reduce(parts, op, switch.values)
                    for result in reduce_all(sessions, parts, op):
                        assert numerics.same_bits(result, want)


def test_32_workers() -> None:
    with UdpModel() as switch, closing(switch.sessions(32)) as sessions:
        parts = random_parts(np.dtype(np.float32), 32, 1003)
        want = numerics.all_reduce(parts, "sum", switch.values)
        assert all(numerics.same_bits(got, want) for got in reduce_all(sessions, parts))


def test_shape_is_kept_and_out_may_be_the_input() -> None:
    with UdpModel() as switch, closing(switch.sessions(2)) as sessions:
        arrays = [np.full((3, 5, 7), rank + 1.0, np.float32) for rank in range(2)]
        handles = [
            s.all_reduce(a, out=a, async_op=True) for s, a in zip(sessions, arrays, strict=True)
        ]
        assert handles[0].wait(30) is arrays[0]
        handles[1].wait(30)
        for array in arrays:
            assert array.shape == (3, 5, 7)
            assert (array == 3.0).all()
        scalars = [np.array(rank, np.int32) for rank in range(2)]
        assert [int(r) for r in reduce_all(sessions, scalars)] == [1, 1]


def test_raw_addresses() -> None:
    with UdpModel() as switch, closing(switch.sessions(2)) as sessions:
        arrays = [np.full(100, 2.5, ml_dtypes.bfloat16) for _ in range(2)]
        handles = [
            s.submit(a.ctypes.data, a.ctypes.data, Collective(ValueType.BFLOAT16, 100), keep=a)
            for s, a in zip(sessions, arrays, strict=True)
        ]
        assert [handle.wait(30) for handle in handles] == [None, None]
        assert all((array == 5).all() for array in arrays)


def test_many_tensors_in_flight_complete_in_any_order_of_waiting() -> None:
    with UdpModel(slots=8) as switch, closing(switch.sessions(2)) as sessions:
        lengths = [1, 700, 64, 3, 200] * 4
        handles = [
            [s.all_reduce(np.full(n, i, np.float32), async_op=True) for i, n in enumerate(lengths)]
            for s in sessions
        ]
        for i in reversed(range(len(lengths))):
            for of_session in handles:
                assert (of_session[i].wait(30) == 2 * i).all()


def test_empty_arrays_cost_no_packet() -> None:
    with UdpModel() as switch, closing(switch.sessions(2)) as sessions:
        assert sessions[0].all_reduce(np.zeros((0, 4), np.float32)).shape == (0, 4)
        assert sessions[0].stats().packets_sent == 0
        assert sessions[0].stats().operations_done == 1


def test_statistics_of_one_operation() -> None:
    with UdpModel() as switch, closing(switch.sessions(1)) as sessions:
        sessions[0].all_reduce(np.ones(64 * 3, np.float32))
        stats = sessions[0].stats()
        assert stats.chunks_done == stats.exponent_rounds == 3
        sent = 3 * (32 + 42) + 3 * (32 + 256 + 42)
        again = stats.retransmissions
        assert stats.packets_sent == 6 + again
        assert stats.bytes_sent - sent in range(74 * again, 330 * again + 1)
        assert stats.srtt_ns > 0


def test_callbacks_run_in_one_other_thread_whenever_they_are_added() -> None:
    with UdpModel() as switch, closing(switch.sessions(1)) as sessions:
        calls: list[tuple[Handle[NDArray[Any]], int]] = []
        three = threading.Semaphore(0)

        def record(handle: Handle[NDArray[Any]]) -> None:
            calls.append((handle, threading.get_ident()))
            three.release()
            raise RuntimeError("must not end the completion thread")

        first = sessions[0].all_reduce(np.ones(5000, np.float32), async_op=True)
        first.add_done_callback(record)
        first.wait(30)
        first.add_done_callback(record)
        second = sessions[0].all_reduce(np.ones(1, np.float32), async_op=True)
        second.add_done_callback(record)
        for _ in range(3):
            assert three.acquire(timeout=30)
        assert [handle for handle, _ in calls] == [first, first, second]
        assert all(handle.done() and handle.exception() is None for handle, _ in calls)
        threads = {thread for _, thread in calls}
        assert len(threads) == 1
        assert threading.get_ident() not in threads


def test_a_callback_added_after_close_runs() -> None:
    with UdpModel() as switch:
        (session,) = switch.sessions(1)
        done = session.all_reduce(np.ones(1, np.float32), async_op=True)
        early, late = threading.Event(), threading.Event()
        done.add_done_callback(lambda _: early.set())
        assert early.wait(30)
        session.close()
        done.add_done_callback(lambda _: late.set())
        assert late.wait(30)


@pytest.mark.parametrize(("slots", "used"), [(48, 32), (64, 64)])
def test_slots_that_are_not_used_are_told(
    slots: int, used: int, caplog: pytest.LogCaptureFixture
) -> None:
    with UdpModel(slots=slots) as switch, closing(switch.sessions(1)) as sessions:
        sessions[0].all_reduce(np.ones(3, np.int32))
        assert 2 * sessions[0].stats().window == used
    assert (f"uses {used} of its {slots} slots" in caplog.text) is (used < slots)


def test_a_missing_worker_is_reported_with_job_rank_and_sequence_number() -> None:
    with UdpModel() as switch, closing(switch.sessions(2, op_timeout_s=0.3)) as sessions:
        reduce_all(sessions, random_parts(INT32, 2, 100))
        handle = sessions[1].all_reduce(np.ones(100, np.int32), async_op=True)
        with pytest.raises(
            OperationTimeoutError, match=r"'test' rank 1 .*number 2 .*another worker"
        ):
            handle.wait()
        first_reason = str(handle.exception())
        # It stays failed, with the first reason.
        with pytest.raises(OperationTimeoutError) as again:
            sessions[1].all_reduce(np.ones(1, np.float32))
        assert str(again.value) == first_reason
        done = threading.Event()
        handle.add_done_callback(lambda _: done.set())
        assert done.wait(30)


def test_waiting_shorter_than_the_operation_takes() -> None:
    with UdpModel() as switch, closing(switch.sessions(2)) as sessions:
        part = np.ones(10, np.int32)
        handle = sessions[0].all_reduce(part, async_op=True)
        with pytest.raises(OperationTimeoutError, match=r"not done after waiting 0\.05 s"):
            handle.wait(0.05)
        assert not handle.done()
        other = sessions[1].all_reduce(part, async_op=True)
        assert (handle.wait(30) == 2).all()
        assert (other.wait(30) == 2).all()


@pytest.mark.parametrize("threads", [1, 4])
def test_ranks_that_differ_are_told_at_once(threads: int) -> None:
    with UdpModel() as switch, closing(switch.sessions(2, threads=[threads, 1])) as sessions:
        before = [session.all_reduce(np.ones(64, np.int32), async_op=True) for session in sessions]
        assert all((handle.wait(30) == 2).all() for handle in before)
        outs = np.full(200, -7, np.float32), np.full(200, -7, np.int32)
        handles: list[Handle[NDArray[Any]]] = [
            session.all_reduce(np.ones_like(out), out=out, async_op=True)
            for session, out in zip(sessions, outs, strict=True)
        ]
        for rank, handle in enumerate(handles):
            own = rf"all-reduce 2 \(sum of {outs[rank].dtype}\[200\]\)"
            with pytest.raises(RanksDifferError, match=f"rank {rank} of 2: .* {own}"):
                handle.wait(30)
            with pytest.raises(RanksDifferError):  # what comes later ends, too
                sessions[rank].all_reduce(np.ones(3, np.int32))
        assert all((out == -7).all() for out in outs)


def test_no_switch_at_the_address() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    ticket = direct_ticket("test", 1, 1, 0, 1, 4, 64, "127.0.0.1", port)
    with Session.direct(ticket, options=WorkerOptions(op_timeout_s=0.3)) as session:
        with pytest.raises(OperationTimeoutError, match=f"nothing listens .* 127.0.0.1:{port}"):
            session.all_reduce(np.ones(3, np.float32))
        assert session.stats().icmp_errors > 0


@pytest.mark.parametrize("host", ["256.0.0.1", "no such host"])
def test_an_address_that_is_none(host: str) -> None:
    with pytest.raises(ValueError, match=host):
        Peer.at((host, 17760))
    joined = pb2.JoinReply(trees=[pb2.Tree(host=host, udp_port=17760)])
    with pytest.raises(InvalidTicketError, match=f"tree 0: host {host!r} is no IPv4 address"):
        ticket_of("test", 0, pb2.CreateJobReply(), joined)


def test_33_workers_of_one_switch_are_refused_with_the_reason() -> None:
    with pytest.raises(InvalidTicketError, match="33 workers at one switch, which sums at most 32"):
        direct_ticket("test", 1, 1, 0, 33, 4, 64, "127.0.0.1", 17760)
    with pytest.raises(WorldSizeError, match="rank 2"):
        Session.join("127.0.0.1:1", "test", 2, 2)


@pytest.fixture
def lone() -> Any:
    with UdpModel() as switch, closing(switch.sessions(1)) as sessions:
        yield sessions[0]


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint32, np.bool_, ">f4", object])
def test_unsupported_dtypes(lone: Session, dtype: Any) -> None:
    with pytest.raises(UnsupportedDtypeError, match="supported are"):
        lone.all_reduce(np.zeros(4, dtype))


def test_unsupported_ops(lone: Session) -> None:
    with pytest.raises(UnsupportedOpError, match="op 'max': supported are sum, avg"):
        lone.all_reduce(np.zeros(4, np.float32), "max")


def test_layouts_that_do_not_fit(lone: Session) -> None:
    base = np.zeros((4, 4), np.float32)
    with pytest.raises(InvalidArrayError, match="C-contiguous"):
        lone.all_reduce(base.T[:, 1:])
    for out in (np.zeros(16, np.float32), np.zeros((4, 4), np.int32), base[::-1]):
        with pytest.raises(InvalidArrayError, match="out"):
            lone.all_reduce(base, out=out)
    flat = np.zeros(20, np.float32)
    with pytest.raises(InvalidArrayError, match="overlaps"):
        lone.all_reduce(flat[:10], out=flat[5:15])
    frozen = np.zeros((4, 4), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(InvalidArrayError, match="writeable"):
        lone.all_reduce(base, out=frozen)


def test_unaligned_memory_is_fine(lone: Session) -> None:
    raw = np.zeros(4 * 100 + 1, np.uint8)
    array = raw[1:].view(np.float32)
    array[:] = np.arange(100)
    assert (lone.all_reduce(array) == np.arange(100)).all()


def test_close_ends_pending_operations_and_is_idempotent() -> None:
    with UdpModel() as switch:
        sessions = switch.sessions(2)
        handle = sessions[0].all_reduce(np.ones(9, np.int32), async_op=True)
        called = threading.Event()
        handle.add_done_callback(lambda _: called.set())
        for session in sessions:
            session.close()
            session.close()
        assert called.is_set()
        with pytest.raises(SessionClosedError, match="is closed"):
            handle.wait()
        with pytest.raises(SessionClosedError, match="is closed"):
            sessions[0].all_reduce(np.ones(9, np.int32))


def use_and_compare(threads: tuple[int, int] = (1, 1)) -> None:
    """Asserts that three pairs of sessions leave as many descriptors and threads as there were."""

    def used() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    def comes_true(condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + 10
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.01)  # a joined thread is in /proc for a moment longer
        return condition()

    with UdpModel() as switch:
        before = used()
        for _ in range(3):
            with closing(switch.sessions(2, threads=threads)) as sessions:
                reduce_all(sessions, random_parts(INT32, 2, 100))
                assert comes_true(lambda: used()[1] == before[1] + sum(threads))
                done = threading.Event()
                handle = sessions[0].all_reduce(np.zeros(0, np.int32), async_op=True)
                handle.add_done_callback(lambda _, done=done: done.set())  # type: ignore[misc]
                assert done.wait(30)
        assert comes_true(lambda: used() == before), (
            f"{used()} descriptors and threads, {before} before"
        )


@pytest.mark.parametrize("threads", [(1, 1), (4, 2)], ids=str)
def test_nothing_is_left_behind(threads: tuple[int, int]) -> None:
    assert forks.call(use_and_compare, threads, timeout_s=120) == (0, "")


def test_a_session_that_is_dropped_warns() -> None:
    with UdpModel() as switch:
        sessions = switch.sessions(1)
        with pytest.warns(ResourceWarning, match="unclosed <ina.host.Session job='test' rank=0/1>"):
            sessions.clear()


def test_a_forked_child_cannot_use_the_session_and_does_no_harm() -> None:
    with UdpModel() as switch, closing(switch.sessions(1)) as sessions:
        sessions[0].all_reduce(np.ones(3, np.int32))
        child = os.fork()
        if child == 0:
            code = 1
            # New threads get the memory of those that the fork left behind.
            for _ in range(8):
                threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
            try:
                sessions[0].all_reduce(np.ones(3, np.int32))
            except SessionClosedError:
                sessions[0].close()
                sessions[0].close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (sessions[0].all_reduce(np.full(3, 4, np.int32)) == 4).all()


def test_a_program_that_forgets_to_close_ends_cleanly() -> None:
    script = """
import sys
import numpy as np
from ina.host import Session, Ticket, one_switch, WorkerOptions
from ina.host.udp import open_socket
from ina.protocol.peer import Peer
address = ("127.0.0.1", int(sys.argv[1]))
sock = open_socket(Peer.at(address))
print(sock.getsockname()[1], flush=True)
sys.stdin.readline()
trees = one_switch(7, 0, 1, 64, Peer.at(address))
session = Session.direct(Ticket("test", 1, 0, 1, 64, 64, trees), sock)
handle = session.all_reduce(np.ones(5, np.int32), async_op=True)
handle.add_done_callback(lambda handle: None)
print(handle.wait().sum(), flush=True)
"""
    with UdpModel() as switch:
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(switch.address[1])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            assert process.stdout is not None
            switch.install_ports(7, 1, [int(process.stdout.readline())])
            out, err = process.communicate("go\n", timeout=60)
        assert (out, err, process.returncode) == ("5\n", "", 0)
