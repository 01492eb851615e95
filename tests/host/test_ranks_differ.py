"""Sessions whose ranks reduce different things: what they say, and what they are told."""

from __future__ import annotations

import numpy as np
import pytest

from ina.errors import InaError
from ina.host import CorruptedSumError, RanksDifferError, Session
from ina.host.handle import Handle
from ina.host.member import latch
from ina.protocol.collective import Collective, Reduction
from ina.protocol.spec import ValueType
from ina.rpc import controller_pb2 as pb2
from ina.rpc.operations import collective_of
from tests.host.members import job, reduce_all
from tests.worlds.virtual.cores import Array

HOW = "ranks differ in all-reduce 2: rank 0: sum of float32[100]; rank 1: avg of float32[100]"


def apart(sessions: list[Session]) -> list[Handle[Array]]:
    ones = np.ones(100, np.float32)
    ops = zip(sessions, ("sum", "avg"), strict=True)
    return [session.all_reduce(ones, op, async_op=True) for session, op in ops]


def test_the_controllers_words_are_waited_for() -> None:
    with job(heartbeat_s=30.0) as (fake, sessions):  # what it hears is not the next regular one
        reduce_all(sessions)
        called: list[str] = []
        handles = apart(sessions)
        for handle in handles:
            handle.add_done_callback(lambda ended: called.append(str(ended.exception())))
        # Both say at once what they have.
        fake.until(lambda: all(fake.progress[rank][-1].differs_at == 2 for rank in range(2)))
        for rank, op in enumerate(Reduction):
            told = fake.progress[rank][-1].submitted
            assert [(o.number, collective_of(o)) for o in told] == [
                (1, Collective(ValueType.INT32, 100)),
                (2, Collective(ValueType.FLOAT32, 100, op)),
            ]
        fake.tell(pb2.JobEvent(kind=pb2.RANKS_DIFFER, reason=HOW, fatal=True))
        for rank, handle in enumerate(handles):
            with pytest.raises(RanksDifferError) as error:
                handle.wait(30)
            assert str(error.value) == f"job 'digits' rank {rank} of 2: {HOW}"
        fake.until(lambda: len(called) == 2)
        assert all(text.endswith(HOW) for text in called)


def test_a_controller_that_says_nothing_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(latch, "_ANSWER_S", 0.05)
    with job() as (_, sessions):
        reduce_all(sessions)
        for handle in apart(sessions):
            with pytest.raises(RanksDifferError, match=r"ranks differ: the result of all-reduce 2"):
                handle.wait(30)


def test_who_is_asked_says_it_at_once() -> None:
    """A rank that has seen nothing wrong hears from the controller that ranks differ."""
    with job(heartbeat_s=30.0) as (fake, sessions):
        reduce_all(sessions)
        said = len(fake.progress[0])
        fake.tell(pb2.JobEvent(kind=pb2.RANKS_DIFFER, reason="asking"))
        fake.until(lambda: len(fake.progress[0]) > said)
        assert [o.number for o in fake.progress[0][-1].submitted] == [1]
        reduce_all(sessions)  # nothing has ended


def test_only_the_last_few_that_all_agree_on_are_told() -> None:
    with job() as (fake, sessions):
        for _ in range(40):
            reduce_all(sessions)
        waiting = [sessions[0].all_reduce(np.ones(3, np.int32), async_op=True) for _ in range(5)]

        def numbers() -> list[int]:
            return [operation.number for operation in fake.progress[0][-1].submitted]

        fake.until(lambda: numbers()[-1:] == [45])
        assert numbers() == list(range(25, 46))  # 16 before, and those that nobody knows of
        for _ in waiting:
            sessions[1].all_reduce(np.ones(3, np.int32), async_op=True)
        for handle in waiting:
            handle.wait(30)


def test_a_session_that_may_go_on_elsewhere_waits_for_the_controllers_words() -> None:
    """Sums that look like those of ranks that differ, and that are corrupted: others take over."""
    heard: list[InaError] = []

    def takes_over(error: InaError) -> bool:
        heard.append(error)
        return True

    with job(heartbeat_s=30.0, recoverable=True, on_failure=takes_over) as (fake, sessions):
        reduce_all(sessions)
        handles = apart(sessions)
        fake.until(lambda: all(fake.progress[rank][-1].differs_at == 2 for rank in range(2)))
        assert not any(handle.done() for handle in handles)
        fake.tell(pb2.JobEvent(kind=pb2.SUMS_CORRUPTED, reason="flipped", fatal=True))
        fake.until(lambda: len(heard) == 2)
        assert not any(handle.done() for handle in handles)
    assert {type(error) for error in heard} == {CorruptedSumError}
    assert {request.cause for request in fake.leaving} == {pb2.SUMS_CORRUPTED}
    assert {request.reason for request in fake.leaving} == {"flipped"}


def test_a_session_that_may_go_on_elsewhere_ends_where_ranks_differ() -> None:
    with job(recoverable=True, on_failure=lambda _: False) as (fake, sessions):
        reduce_all(sessions)
        handles = apart(sessions)
        fake.tell(pb2.JobEvent(kind=pb2.RANKS_DIFFER, reason=HOW, fatal=True))
        for handle in handles:
            with pytest.raises(RanksDifferError, match="rank 0: sum of"):
                handle.wait(30)
