"""A worker's membership while it reduces: heartbeats, events, and what ends it."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time

import pytest

from ina.errors import InaError
from ina.host import (
    CorruptedSumError,
    JobEndedError,
    JobEvictedError,
    JobFailedError,
    OperationTimeoutError,
    Session,
    SessionClosedError,
    SwitchLostError,
    WorkerLostError,
)
from ina.rpc import controller_pb2 as pb2
from tests.host.members import ONES, job, reduce_all
from tests.worlds.fakes.controller import EPOCH, FakeController
from tests.worlds.fakes.udp_model import UdpModel
from tests.worlds.processes import forks


def reduce_on(session: Session, limit_s: float = 30.0) -> None:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        session.all_reduce(ONES)


@pytest.mark.parametrize(
    ("kind", "error_type"),
    [
        (pb2.MEMBER_LOST, WorkerLostError),
        (pb2.JOB_EVICTED, JobEvictedError),
        (pb2.SWITCH_LOST, SwitchLostError),
        (pb2.SUMS_CORRUPTED, CorruptedSumError),
        (pb2.JOB_ENDED, JobEndedError),
    ],
)
def test_a_fatal_event_ends_pending_and_later_operations(
    kind: pb2.EventKind, error_type: type[JobFailedError]
) -> None:
    reason = "rank 1 (10.0.0.3:4433) has died: no heartbeat for 10 s"
    with job() as (fake, sessions):
        reduce_all(sessions)
        pending = sessions[0].all_reduce(ONES, async_op=True)
        called = threading.Event()
        pending.add_done_callback(lambda _: called.set())
        fake.tell(pb2.JobEvent(kind=kind, reason=reason, ranks=[1], fatal=True))
        with pytest.raises(error_type) as pended:
            pending.wait(30)
        assert str(pended.value) == f"job 'digits' rank 0 of 2: {reason}"
        assert pended.value.ranks == (1,)
        assert called.wait(30)
        with pytest.raises(error_type) as later:
            sessions[0].all_reduce(ONES)
        assert str(later.value) == str(pended.value)
        assert later.value is not pended.value  # each raise has a traceback of its own


def test_events_of_another_incarnation_do_not_matter() -> None:
    with job() as (fake, sessions):
        for event in (
            pb2.JobEvent(kind=pb2.MEMBER_LOST, epoch=EPOCH + 1, reason="old", fatal=True),
            pb2.JobEvent(kind=pb2.MEMBER_JOINED, ranks=[0]),
            pb2.JobEvent(kind=pb2.SWITCH_UNREACHABLE, reason="the controller cannot reach it"),
            pb2.JobEvent(kind=pb2.SWITCH_BACK, reason="it can again"),
        ):
            fake.tell(event)
        reduce_all(sessions)
        fake.tell(pb2.JobEvent(kind=pb2.JOB_EVICTED, reason="by ann", fatal=True))
        with pytest.raises(JobEvictedError, match="by ann"):
            sessions[0].all_reduce(ONES)


def test_a_job_that_the_controller_does_not_know_has_ended() -> None:
    with job() as (fake, sessions):
        fake.ended = "job 'digits' has ended: evicted by ann"
        with pytest.raises(JobEndedError, match=r"rank 0 of 2: .*evicted by ann \(NOT_FOUND\)"):
            sessions[0].all_reduce(ONES)


def test_heartbeats_tell_how_the_worker_gets_on() -> None:
    with job() as (fake, sessions):
        reduce_all(sessions)
        waiting = sessions[0].all_reduce(ONES, async_op=True)  # two chunks; rank 1 is late

        def both_quiet() -> bool:
            last = [fake.progress.get(rank, [pb2.Progress()])[-1] for rank in range(2)]
            return all(p.lane_seqs for p in last) and last[0].in_flight == 2

        fake.until(both_quiet)
        w = sessions[0].stats().window
        late, missing = fake.progress[0][-1], fake.progress[1][-1]
        assert (late.operations_submitted, late.operations_done, late.chunks_done) == (2, 1, 2)
        assert (missing.operations_submitted, missing.in_flight) == (1, 0)
        # The first operation took numbers 0 and 1, the second 2 and 3; the other lanes have sent
        # nothing, as if their number before the first were answered.
        unused = [(2**32 + lane - w) % 2**32 for lane in range(4, w)]
        assert list(late.lane_seqs) == [0, 1, 2, 3, *unused]
        assert list(missing.lane_seqs) == [0, 1, 2**32 + 2 - w, 2**32 + 3 - w, *unused]
        assert int.from_bytes(late.lanes_waiting, "little") == 0b1100
        assert int.from_bytes(missing.lanes_waiting, "little") == 0
        assert late.oldest_seq in (2, 3)
        assert late.silent_s > 0
        assert late.oldest_waited_s > 0
        assert not late.switch_refuses
        sessions[1].all_reduce(ONES)
        waiting.wait(30)
        fake.until(lambda: fake.progress[0][-1].chunks_done == 4)
        assert fake.progress[0][-1].silent_s == 0


def test_training_outlives_its_controller() -> None:
    with job(lease_s=0.1) as (fake, sessions):
        reduce_all(sessions)
        fake.stop()
        deadline = time.monotonic() + 0.5  # five leases
        while time.monotonic() < deadline:
            reduce_all(sessions)
        seen, fake.watching = len(fake.progress[0]), {}
        fake.start()
        fake.until(lambda: len(fake.progress[0]) > seen and len(fake.watching) == 2)
        reduce_all(sessions)


def test_a_switch_that_refuses_for_a_lease_is_lost() -> None:
    with job(lease_s=0.2) as (fake, sessions):
        reduce_all(sessions)
        fake.switch.close()
        handles = [session.all_reduce(ONES, async_op=True) for session in sessions]
        for handle in handles:
            with pytest.raises(SwitchLostError, match="the switch is gone: nothing has listened"):
                handle.wait(60)
        fake.until(lambda: fake.progress[0][-1].switch_refuses)


def test_a_stall_is_explained_by_what_the_controller_says(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with job(op_timeout_s=0.4) as (fake, sessions):
        pending = sessions[0].all_reduce(ONES, async_op=True)
        fake.tell(pb2.JobEvent(kind=pb2.JOB_STALLED, reason="rank 1 has not sent number 0"))
        with pytest.raises(OperationTimeoutError, match=r"rank 1 has not sent number 0$"):
            pending.wait(30)
    told = "job 'digits' rank 0 of 2: rank 1 has not sent number 0"
    assert ("ina.host.member.watch", logging.WARNING, told) in caplog.record_tuples


def test_a_stall_that_ended_while_the_controller_was_away_explains_nothing() -> None:
    with job(op_timeout_s=0.6) as (fake, sessions):
        fake.tell(pb2.JobEvent(kind=pb2.JOB_STALLED, reason="rank 1 has not sent number 0"))
        until_hinted(sessions[0])
        fake.stop()
        fake.watching = {}
        fake.start()
        fake.until(lambda: len(fake.watching) == 2)
        with pytest.raises(OperationTimeoutError, match=r"no result for 0\.6") as late:
            sessions[0].all_reduce(ONES)
        assert "has not sent" not in str(late.value)


def until_hinted(session: Session) -> None:
    deadline = time.monotonic() + 30
    while session._core.latch.said() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_worker_that_left_is_named() -> None:
    with job(op_timeout_s=0.4) as (fake, sessions):
        pending = sessions[0].all_reduce(ONES, async_op=True)
        fake.tell(pb2.JobEvent(kind=pb2.MEMBER_LEFT, ranks=[1]))
        with pytest.raises(OperationTimeoutError, match=r"rank 1 has left the job$"):
            pending.wait(30)


def test_leaving_says_how_far_the_worker_came() -> None:
    with job(heartbeat_s=30.0) as (fake, sessions):
        reduce_all(sessions)
        pending = sessions[0].all_reduce(ONES, async_op=True)
        for session in sessions:
            session.close()
        with pytest.raises(SessionClosedError):
            pending.wait(30)
        middle, end = fake.last_words[0], fake.last_words[1]
        assert (middle.operations_submitted, middle.operations_done) == (2, 1)
        assert (end.operations_submitted, end.operations_done) == (1, 1)


def test_once_a_rank_has_left_what_is_begun_is_told_at_once() -> None:
    with job(heartbeat_s=60.0) as (fake, sessions):
        reduce_all(sessions)
        fake.tell(pb2.JobEvent(kind=pb2.MEMBER_LEFT, ranks=[1]))
        fake.until(lambda: fake.progress[0][-1].operations_submitted == 1)
        sessions[0].all_reduce(ONES, async_op=True)
        fake.until(lambda: fake.progress[0][-1].oldest.number == 2)


def test_what_ended_the_job_while_the_controller_was_away_is_told() -> None:
    with job(workers=1) as (fake, sessions):
        fake.stop()
        fake.ended = "job 'digits' has ended"
        fake.end = pb2.JobEvent(kind=pb2.SWITCH_LOST, reason="registers lost", fatal=True)
        fake.start()
        with pytest.raises(SwitchLostError, match="registers lost"):
            reduce_on(sessions[0])


@pytest.mark.parametrize(
    ("rank", "follows"),
    [
        (None, "sums do not need it; trying again"),
        # The sums end with it: nothing may say that they go on.
        (1, "it runs in rank 1's process, and so does the switch: trying again, for 60 s"),
    ],
)
def test_what_a_controller_that_is_away_means_is_said(
    rank: int | None, follows: str, caplog: pytest.LogCaptureFixture
) -> None:
    with job(controller_with_rank=rank) as (fake, _):
        fake.stop()
        deadline = time.monotonic() + 30
        while not (said := [r.message for r in caplog.records if "rank 0 alive" in r.message]):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        fake.start()
    assert said[0].endswith(f"(UNAVAILABLE); {follows}")


def test_a_failure_can_be_taken_over() -> None:
    errors: list[InaError] = []
    told = threading.Event()

    def take_over(error: InaError) -> bool:
        errors.append(error)
        told.set()
        return True

    with job(workers=1, on_failure=take_over) as (fake, sessions):
        for _ in range(2):
            fake.tell(pb2.JobEvent(kind=pb2.SWITCH_LOST, reason="registers lost", fatal=True))
        assert told.wait(30)
        reduce_all(sessions)
        assert sessions[0].error() is None
    assert [type(error) for error in errors] == [SwitchLostError]


def test_leaving_carries_the_members_key_and_ends_the_threads() -> None:
    assert forks.call(join_and_count, timeout_s=60) == (0, "")


def sockets() -> list[str]:
    """Of this process."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the listing's own
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
    return sorted(name for name in found if name.startswith("socket:"))


def join_and_count() -> None:
    before = sockets()
    with UdpModel() as switch, FakeController(switch, lease_s=60.0, heartbeat_s=0.05) as fake:
        for _ in range(2):
            with Session.join(fake.address, "digits", 0, 1) as session:
                fake.until(lambda: 0 in fake.watching and 0 in fake.progress)
                reduce_all([session])
            names = [thread.name for thread in threading.enumerate()]
            assert not [name for name in names if name.startswith("ina-")], names
            fake.joined.clear()
        assert fake.left == [(0, EPOCH)] * 2
    assert sockets() == before


def test_a_forked_child_does_not_disturb_the_membership() -> None:
    with job(workers=1) as (fake, sessions):
        reduce_all(sessions)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                sessions[0].all_reduce(ONES)
            except SessionClosedError:
                sessions[0].close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        seen = len(fake.progress[0])
        fake.until(lambda: len(fake.progress[0]) > seen + 2)
        reduce_all(sessions)
        assert fake.left == []


def test_heartbeats_and_events_follow_a_takeover() -> None:
    with (
        UdpModel() as switch,
        FakeController(switch, lease_s=60.0, heartbeat_s=0.05) as first,
        FakeController(switch) as second,
    ):
        second.standby = True
        with Session.join(f"{first.address},{second.address}", "digits", 0, 1) as session:
            first.until(lambda: 0 in first.progress and 0 in first.watching)
            first.standby, second.standby = True, False
            first.watching[0].put(None)  # its stream ends
            second.until(lambda: 0 in second.progress and 0 in second.watching)
            assert session.error() is None
            second.tell(pb2.JobEvent(kind=pb2.JOB_EVICTED, reason="by ann", fatal=True))
            with pytest.raises(JobEvictedError, match="by ann"):
                reduce_on(session)
        assert (first.left, second.left) == ([], [(0, EPOCH)])


def test_events_follow_a_takeover_from_a_controller_that_hangs() -> None:
    with (
        UdpModel() as switch,
        FakeController(switch, lease_s=60.0, heartbeat_s=0.05) as first,
        FakeController(switch) as second,
        Session.join(f"{first.address},{second.address}", "digits", 0, 1) as session,
    ):
        first.until(lambda: 0 in first.progress and 0 in first.watching)
        first.standby = True  # its stream stays open, as that of a stopped process does
        second.until(lambda: 0 in second.progress and 0 in second.watching)
        second.tell(pb2.JobEvent(kind=pb2.JOB_EVICTED, reason="by ann", fatal=True))
        with pytest.raises(JobEvictedError, match="by ann"):
            reduce_on(session)


def test_heartbeats_keep_the_pace_of_a_restarted_controllers_lease() -> None:
    with (
        UdpModel() as switch,
        FakeController(switch, lease_s=600.0, heartbeat_s=120.0) as fake,
        Session.join(fake.address, "digits", 0, 1),
    ):
        fake.until(lambda: 0 in fake.progress and 0 in fake.watching)
        fake.stop()
        fake.lease_s, fake.heartbeat_s = 0.5, 0.1
        fake.start()
        fake.until(lambda: len(fake.progress[0]) > 5)
