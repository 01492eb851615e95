"""Sessions whose job changes to another mapping while they reduce; the controller is a fake."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager

import numpy as np
import pytest

from ina.host import Session, TransportError, WorkerOptions
from ina.host.member import remap
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.controller import EPOCH, FakeController
from tests.worlds.fakes.udp_model import UdpModel, closing
from tests.worlds.virtual.remapped import Tensors

SLOTS = 256
VALUES = 64


@contextmanager
def job(
    workers: int, slots: int, *, loss: float = 0.0, heartbeat_s: float = 60.0, threads: int = 1
) -> Iterator[tuple[FakeController, list[Session]]]:
    """`heartbeat_s`: long, so that it is the events that tell."""
    with (
        UdpModel(SLOTS, VALUES, loss=loss, seed=slots) as switch,
        FakeController(switch, lease_s=600.0, heartbeat_s=heartbeat_s) as fake,
        futures.ThreadPoolExecutor(workers) as pool,
    ):
        fake.slots = slots
        joining = [
            pool.submit(
                Session.join, fake.address, "resized", rank, workers, WorkerOptions(threads=threads)
            )
            for rank in range(workers)
        ]
        with closing([future.result(60) for future in joining]) as sessions:
            fake.until(lambda: len(fake.watching) == workers)
            yield fake, sessions


def is_over(fake: FakeController, sessions: list[Session]) -> bool:
    """Whether all work by the controller's mapping, and no other."""
    known = [(fake.epoch, fake.slots // 2)]
    return fake.mapping is None and all(s._transport.mappings() == known for s in sessions)


def until_over(fake: FakeController, sessions: list[Session], slots: int) -> None:
    fake.until(lambda: fake.mapping is None)
    fake.slots = slots
    over = threading.Event()
    for _ in range(1000):
        if is_over(fake, sessions):
            return
        over.wait(0.01)
    raise AssertionError([session._transport.mappings() for session in sessions])


@pytest.mark.parametrize(
    ("threads", "loss", "waits"),
    [
        pytest.param(threads, loss, waits, marks=[] if waits == is_odd else [pytest.mark.long])
        for threads, loss, is_odd in [(1, 0.0, 0), (1, 0.05, 1), (2, 0.0, 1), (2, 0.05, 0)]
        for waits in (False, True)
    ],
)
def test_resizes_in_a_row_while_it_reduces(threads: int, loss: float, waits: bool) -> None:
    with job(3, 16, loss=loss, threads=threads) as (fake, sessions):
        tensors = Tensors(sessions, VALUES, threads)
        at_end = False
        for slots in (64, 8, 8, 128):
            tensors.submit_all(5)
            at_end = not at_end
            fake.remap(slots, SLOTS - slots if at_end else 0, waits=waits)
            while fake.mapping is not None and not fake.mapping.first_operation:
                tensors.submit_all(1)
            while fake.mapping is not None:
                tensors.submit_all(2)
                tensors.check()
            until_over(fake, sessions, slots)
        tensors.submit_all(5)
        tensors.check()
        assert [session.ticket.slots for session in sessions] == [128] * 3
        assert [session.ticket.epoch for session in sessions] == [EPOCH + 4] * 3
        assert all(session.stats().window == 64 for session in sessions)


def test_an_idle_job_moves_at_once() -> None:
    with job(2, 16) as (fake, sessions):
        fake.remap(64, 128)
        until_over(fake, sessions, 64)
        assert next(r.first_operation for r in fake.said if r.first_operation) == 1
        tensors = Tensors(sessions, VALUES, 1)
        tensors.submit_all(3)
        tensors.check()


def test_who_missed_the_event_hears_of_it_by_a_heartbeat() -> None:
    with job(2, 16, heartbeat_s=0.05) as (fake, sessions):
        fake.remap(64, 128, tells=False)
        until_over(fake, sessions, 64)


def test_who_opens_its_stream_again_hears_at_once_what_it_has_missed() -> None:
    """Heartbeats are rare, but there is one as it breaks, and one as it is open again."""
    with job(2, 16) as (fake, sessions):
        fake.until(lambda: len(fake.progress) == 2)
        before = {rank: len(said) for rank, said in fake.progress.items()}
        broken, fake.watching = fake.watching, {}
        for events in broken.values():
            events.put(None)
        fake.until(lambda: len(fake.watching) == 2)
        fake.until(lambda: all(len(fake.progress[r]) >= before[r] + 2 for r in (0, 1)))
        fake.remap(64, 128)
        until_over(fake, sessions, 64)


def test_a_busy_rank_0_leaves_some_to_the_old_mapping() -> None:
    """As many as it submits while the others hear of it."""
    with job(2, 16) as (fake, sessions):
        held = [np.ones(VALUES * 3, np.int32) for _ in range(2)]
        handle = sessions[0].all_reduce(held[0], async_op=True)  # under way: rank 1 has not begun
        fake.remap(64, 128)
        fake.until(lambda: fake.mapping is not None and fake.mapping.first_operation)
        assert fake.mapping is not None
        first = fake.mapping.first_operation
        assert 2 <= first <= 3
        sessions[1].all_reduce(held[1])
        handle.wait(30)
        for _ in range(first):
            handles = [s.all_reduce(h, async_op=True) for s, h in zip(sessions, held, strict=True)]
            [handle.wait(30) for handle in handles]
        until_over(fake, sessions, 64)


def test_what_cannot_be_is_declined_with_the_reason() -> None:
    with job(2, 16) as (fake, sessions):
        fake.remap(64, 128)
        assert fake.mapping is not None
        until_over(fake, sessions, 64)
        tree = pb2.Tree(
            job=3, host="127.0.0.1", udp_port=9, worker=40, expected_bitmap=3, first_lane=0, lanes=8
        )
        fake.switch.install_beside(3, fake.epoch + 1, 0, 16)
        fake.mapping = pb2.Mapping(epoch=fake.epoch + 1, mode=fake.mode, slots=16, trees=[tree])
        fake.tell(pb2.JobEvent(kind=pb2.JOB_REMAPS))
        fake.until(lambda: any(request.declined for request in fake.said))
        (said, *_) = [request for request in fake.said if request.declined]
        assert "cannot follow: " in said.reason
        assert "worker is 40, must be 0..31" in said.reason
        fake.until(lambda: fake.mapping is None)
        tensors = Tensors(sessions, VALUES, 1)
        tensors.submit_all(3)
        tensors.check()
        assert sessions[0]._transport.mappings() == [(fake.epoch, 32)]


def test_a_rank_that_cannot_follow_fails_with_the_reason() -> None:
    with job(2, 16) as (fake, sessions):
        member = sessions[1]._core.member
        assert member is not None
        remapping = member._remapper._remapping
        transport = remapping._transport

        class Refusing:
            """A transport whose channel leads to one switch."""

            def begin_remap(self, *_: object) -> None:
                raise RuntimeError("shm leads to one switch, not to 2")

            def __getattr__(self, name: str) -> object:
                return getattr(transport, name)

        remapping._transport = Refusing()  # type: ignore[assignment]
        plain = fake._hear

        def hear(request: pb2.RemapRequest, mapping: pb2.Mapping) -> None:
            if not request.declined:  # it was late: rank 0 has decided
                plain(request, mapping)

        fake._hear = hear  # type: ignore[method-assign]
        fake.remap(64, 128)
        fake.until(lambda: fake.mapping is not None and fake.mapping.first_operation)
        handle = sessions[1].all_reduce(np.ones(9, np.int32), async_op=True)
        with pytest.raises(TransportError, match="rank 1 cannot follow: shm leads to one switch"):
            handle.wait(30)


def test_a_question_that_the_controller_does_not_answer_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(remap, "_ANSWER_S", 0.1)
    with job(2, 16) as (fake, sessions), caplog.at_level(logging.DEBUG, "ina.host"):
        fake.answers.clear()
        fake.remap(64, 128)
        tensors = Tensors(sessions, VALUES, 1)
        while "(after 0.1 s)" not in caplog.text:
            tensors.submit_all(1)
            tensors.check()
        fake.answers.set()
        while fake.mapping is not None:
            tensors.submit_all(1)
            tensors.check()
        until_over(fake, sessions, 64)


def test_closing_does_not_wait_for_an_answer_that_does_not_come(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(remap, "_JOIN_S", 0.05)
    with job(2, 16) as (fake, sessions), caplog.at_level(logging.WARNING):
        fake.answers.clear()
        fake.remap(64, 128)
        fake.until(lambda: 0 in fake.asking)
        sessions[0].close()
        assert "thread ina-remap-resized-0 does not end" in caplog.text
        fake.answers.set()
