"""Sessions that stop and are finished without the switch, over real sockets."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ina.errors import InaError, InvalidInputError
from ina.host import (
    Handle,
    OperationTimeoutError,
    RecoveryError,
    Session,
    SessionClosedError,
    SessionFrozenError,
    SwitchLostError,
)
from ina.host.frozen import Frozen
from ina.host.recovery import Transfer
from ina.protocol.coding import CODINGS
from ina.protocol.collective import Collective
from ina.protocol.spec import ValueType
from ina.testing import numerics, packed
from tests.host.sums import recover
from tests.selection import LONG
from tests.worlds.fakes.udp_model import UdpModel, closing
from tests.worlds.parts import INT32, random_parts
from tests.worlds.recovering import given

DTYPES = (INT32, *numerics.FLOATS)
WIRES = ("32", "16", "8")
Pair = list[Session]


def test_random_bits_go_by_a_tensors_number_among_all_of_its_group() -> None:
    with UdpModel(slots=16) as switch, closing(switch.sessions(2)) as pair:
        for session in pair:
            session.count_on_from(41)
        for number in (42, 43):
            parts = random_parts(numerics.FLOATS[0], 2, 700, number)
            handles = [
                session.all_reduce(part, async_op=True, wire="8-stochastic")
                for session, part in zip(pair, parts, strict=True)
            ]
            wanted = packed.all_reduce(parts, "sum", 64, CODINGS["8-stochastic"], number)
            assert all(numerics.same_bits(handle.wait(30), wanted) for handle in handles)


def test_operations_under_way_end_with_the_undisturbed_sums() -> None:
    left, transfers = 0, 0
    for seed in range(12 if LONG else 5):
        with (
            UdpModel(slots=16, loss=0.05, seed=seed) as switch,
            closing(switch.sessions(2, recoverable=True)) as pair,
        ):
            inputs = [random_parts(DTYPES[i % 4], 2, 100 + 300 * i, i) for i in range(8)]
            wanted = [
                packed.all_reduce(p, ("sum", "avg")[i % 2], 64, CODINGS[WIRES[i % 3]])
                for i, p in enumerate(inputs)
            ]
            handles: list[list[Handle[NDArray[Any]]]] = [[], []]
            for i, parts in enumerate(inputs):
                for rank, part in enumerate(parts):
                    handle = pair[rank].all_reduce(
                        part, ("sum", "avg")[i % 2], out=part, async_op=True, wire=WIRES[i % 3]
                    )
                    handles[rank].append(handle)
            handles[seed % 2][seed % 8].wait(30)
            plan = recover([session.freeze() for session in pair])
            left += sum(bool(entry.undone) for entry in plan.sums)
            transfers += len(plan.transfers)
            for of_rank in handles:
                for handle, want in zip(of_rank, wanted, strict=True):
                    assert numerics.same_bits(handle.wait(30), want)
    assert left > 0
    assert transfers > 0


@pytest.fixture
def pair() -> Any:
    with UdpModel() as switch, closing(switch.sessions(2, recoverable=True)) as sessions:
        yield sessions


ONES = np.ones(300, np.int32)


def test_what_is_frozen_stays_pending_and_takes_no_more(pair: Pair) -> None:
    handle = pair[0].all_reduce(ONES, async_op=True)
    frozen = pair[0].freeze()
    assert frozen is pair[0].freeze()
    pair[1].all_reduce(ONES, async_op=True)  # which may even end: rank 0 may have sent its part
    with pytest.raises(OperationTimeoutError):
        handle.wait(0.1)
    with pytest.raises(SessionFrozenError, match="'test' rank 0 of 2: the session is frozen"):
        pair[0].all_reduce(ONES)
    assert pair[0].stats().operations_done == 0
    (pending,) = frozen.export.pending
    assert (pending.what, pending.undone) == (Collective(ValueType.INT32, 300), ((0, 5),))
    assert (frozen.export.submitted, frozen.export.chunk_words) == (1, 64)
    called = threading.Event()
    handle.add_done_callback(lambda _: called.set())
    (last,) = frozen.spans(1, ((4, 5),))
    (every,) = frozen.spans(1, ((0, 5),))
    assert (given(frozen.inputs(1, last)) == np.ones(44)).all()
    given(frozen.outputs(1, every))[:] = 7
    frozen.complete(1)
    assert (handle.wait(30) == 7).all()
    assert called.wait(30)


def test_operations_fail_one_by_one_with_their_reason(pair: Pair) -> None:
    handles = [pair[0].all_reduce(ONES, async_op=True) for _ in range(2)]
    frozen = pair[0].freeze()
    frozen.fail(1, SwitchLostError("gloo: connection reset"))
    with pytest.raises(SwitchLostError, match="gloo: connection reset"):
        handles[0].wait(30)
    assert not handles[1].done()
    with pytest.raises(RecoveryError, match="operation 1 is not pending"):
        frozen.complete(1)


def test_the_jobs_end_does_not_matter_to_a_frozen_session(pair: Pair) -> None:
    handle = pair[0].all_reduce(ONES, async_op=True)
    pair[0].freeze()
    pair[0].fail(SwitchLostError("registers lost"))
    assert not handle.done()
    assert pair[0].error() is None


def test_close_ends_what_is_frozen(pair: Pair) -> None:
    handle = pair[0].all_reduce(ONES, async_op=True)
    frozen = pair[0].freeze()
    called = threading.Event()
    handle.add_done_callback(lambda _: called.set())
    pair[0].close()
    assert called.is_set()
    with pytest.raises(SessionClosedError):
        handle.wait()
    with pytest.raises(SessionClosedError):
        pair[0].freeze()
    with pytest.raises(RecoveryError, match="not frozen"):
        frozen.complete(1)


def test_a_failed_session_cannot_be_frozen(pair: Pair) -> None:
    pair[0].fail(SwitchLostError("registers lost"))
    with pytest.raises(SwitchLostError, match="registers lost"):
        pair[0].freeze()


def test_a_stalled_session_cannot_be_frozen() -> None:
    with (
        UdpModel() as switch,
        closing(switch.sessions(2, recoverable=True, op_timeout_s=0.2)) as pair,
    ):
        with pytest.raises(OperationTimeoutError, match="no result for"):
            pair[0].all_reduce(ONES)
        with pytest.raises(OperationTimeoutError, match="no result for"):
            pair[0].freeze()


def test_freezing_must_be_asked_for() -> None:
    with UdpModel() as switch, closing(switch.sessions(1)) as (session,):
        with pytest.raises(InvalidInputError, match="recoverable was not asked for"):
            session.freeze()
        session.all_reduce(ONES)  # nothing has happened to it


def test_on_failure_may_freeze() -> None:
    frozen: list[Frozen] = []
    sessions: list[Session] = []

    def take_over(error: InaError) -> bool:
        frozen.append(sessions[0].freeze())
        return True

    with UdpModel() as switch:
        sessions += switch.sessions(2, recoverable=True, on_failure=take_over)
        with closing(sessions):
            handle = sessions[0].all_reduce(ONES, async_op=True)
            sessions[0].fail(SwitchLostError("registers lost"))
            (every,) = frozen[0].spans(1, ((0, 5),))
            given(frozen[0].outputs(1, every))[:] = 3
            frozen[0].complete(1)
            assert (handle.wait(30) == 3).all()


def test_of_two_failures_the_one_that_was_settled_first_stays() -> None:
    sessions: list[Session] = []

    def meanwhile(error: InaError) -> bool:
        sessions[0].fail(SwitchLostError("while the first was thought about"))
        return False

    with UdpModel() as switch:
        sessions += switch.sessions(1, on_failure=meanwhile)
        with closing(sessions):
            for _ in range(2):
                sessions[0].fail(SwitchLostError("registers lost"))
                with pytest.raises(SwitchLostError, match="while the first"):
                    sessions[0].all_reduce(ONES)


def test_an_on_failure_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def broken(error: InaError) -> bool:
        raise RuntimeError("of the test")

    with UdpModel() as switch, closing(switch.sessions(1, on_failure=broken)) as (session,):
        session.fail(SwitchLostError("registers lost"))
        with pytest.raises(SwitchLostError):
            session.all_reduce(ONES)
    assert "on_failure failed with job 'test'" in caplog.text


def test_requests_that_do_not_fit_are_refused(pair: Pair) -> None:
    pair[0].all_reduce(ONES, async_op=True)
    deadline = time.monotonic() + 30
    while pair[0].stats().packets_sent < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    frozen = pair[0].freeze()
    (first,) = frozen.spans(1, ((0, 1),))
    with pytest.raises(RecoveryError, match="no chunks"):
        frozen.spans(1, ((5, 6),))
    with pytest.raises(RecoveryError, match="not pending"):
        frozen.outputs(2, first)
    transfer = Transfer(1, 0, 0, 1, 0, 1, (0,))
    with pytest.raises(RecoveryError, match="does not have the result"):
        frozen.lane_data(transfer)
    with pytest.raises(RecoveryError, match="256 bytes, got 3"):
        frozen.put(transfer, b"abc")
    with pytest.raises(RecoveryError, match="does not wait for values"):
        frozen.put(Transfer(1, 0, 99, 1, 0, 1, (0,)), bytes(256))
    assert not given(frozen.inputs(1, first)).flags.writeable


def test_freezing_while_threads_submit(pair: Pair) -> None:
    """Each submission is either in the export or was refused."""
    taken: list[int] = []

    def submit() -> None:
        try:
            while True:
                pair[0].all_reduce(ONES, async_op=True)
                taken.append(1)
        except SessionFrozenError:
            pass

    threads = [threading.Thread(target=submit) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.05)
    frozen = pair[0].freeze()
    for thread in threads:
        thread.join(30)
    assert len(taken) == frozen.export.submitted == len(frozen.export.pending)


def test_ends_that_race_leave_nothing_pending() -> None:
    """fail, freeze, close, submit and lanes at once: every operation ends, nothing hangs."""
    for round_ in range(20):
        with UdpModel() as switch:
            session, other = switch.sessions(2, recoverable=True)
            handles = [session.all_reduce(ONES, async_op=True) for _ in range(3)]
            ready = threading.Barrier(4)

            def at_once(act: Any, ready: threading.Barrier = ready) -> None:
                ready.wait(30)
                with contextlib.suppress(InaError):
                    act()

            fail = SwitchLostError("registers lost")
            acts: list[Any] = [
                lambda session=session, fail=fail: session.fail(fail),
                session.freeze,
                session._transport.lanes,
                lambda session=session: session.all_reduce(ONES, async_op=True),
            ]
            if round_ % 2:
                acts[2] = session.close
            threads = [threading.Thread(target=at_once, args=(act,)) for act in acts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(30)
                assert not thread.is_alive()
            session.close()
            other.close()
            assert all(handle.done() for handle in handles)
            assert all(handle.exception() is not None for handle in handles)
