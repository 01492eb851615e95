"""Heartbeats, leases and events through the real service, on a real soft switch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from ina.controller.app import ControllerApp
from ina.controller.config import make_config
from ina.controller.embedded import Embedded
from ina.controller.watch import leases
from ina.protocol.spec import VERSION
from ina.rpc import controller_pb2 as pb2
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from tests.worlds.fakes.workers import Workers, is_clean, refusal, workers_of

pytestmark = pytest.mark.usefixtures("quick_retries")


@pytest.fixture
def workers() -> Iterator[Workers]:
    """Leases of one second; a heartbeat is wanted every 0.2 s."""
    with (
        Embedded(values=64, slots=8, config={"jobs": {"lease_s": 1}}) as embedded,
        workers_of(embedded.controller_addr) as them,
    ):
        yield them


def until(stream: Iterator[pb2.JobEvent], kind: pb2.EventKind) -> pb2.JobEvent:
    return next(event for event in stream if event.kind == kind)


def test_join_says_what_a_worker_owes(workers: Workers) -> None:
    joined = workers.run_job("j", 2)
    assert (joined.lease_s, joined.heartbeat_s, joined.window) == (1.0, 0.2, 4)
    keys = {workers.keys["j", joined.epoch, rank] for rank in range(2)}
    assert len(keys) == 2
    assert all(len(key) == 16 for key in keys)


def test_a_silent_worker_is_named_to_the_others_and_everything_is_free(workers: Workers) -> None:
    epoch = workers.run_job("j", 3).epoch
    progress = pb2.Progress(in_flight=1, oldest_seq=123)
    workers.heartbeat("j", 2, epoch, progress)
    with workers.watch("j", 0, epoch) as events, workers.alive("j", (0, 1), epoch):
        lost = until(events, pb2.MEMBER_LOST)
        until(events, pb2.JOB_ENDED)
    assert (lost.fatal, list(lost.ranks), lost.epoch) == (True, [2], epoch)
    assert lost.reason == (
        "rank 2 (127.0.0.1:4002) is dead, stopped or not running Python: no heartbeat for 1 s,"
        " last sequence number 123"
    )
    assert is_clean(workers)
    with refusal(grpc.StatusCode.NOT_FOUND, "epoch 1 of it has ended: rank 2 .* is dead,"):
        workers.heartbeat("j", 1, epoch)
    with workers.watch("j", 1, epoch) as late:  # who could not hear it then
        assert list(late) == [lost]
    workers.run_job("j", 3)  # the name is free too


def test_a_broken_stream_is_a_death_without_a_heartbeat(workers: Workers) -> None:
    epoch = workers.run_job("j", 2).epoch
    with workers.watch("j", 0, epoch) as events, workers.alive("j", [0], epoch):
        with workers.watch("j", 1, epoch):
            assert [member.watching for member in workers.show_job("j").members] == [True, True]
        assert list(until(events, pb2.MEMBER_LOST).ranks) == [1]


def test_a_worker_that_reconnects_lives(workers: Workers) -> None:
    epoch = workers.run_job("j", 2).epoch
    with workers.watch("j", 0, epoch) as events, workers.alive("j", [0, 1], epoch):
        for _ in range(5):
            with workers.watch("j", 1, epoch):
                pass
        workers.leave("j", 1, epoch)
        heard = [next(events).kind]
    assert heard == [pb2.MEMBER_LEFT]
    workers.leave("j", 0, epoch)
    assert is_clean(workers)


def test_restarted_workers_wait_for_the_death_of_their_former_selves(workers: Workers) -> None:
    epoch = workers.run_job("j", 2).epoch
    with workers.alive("j", [0], epoch):
        with (
            workers.watch("j", 1, epoch),
            workers.alive("j", [1], epoch),
            refusal(grpc.StatusCode.ALREADY_EXISTS, "'j' is in use: it is running"),
        ):
            workers.create("j", 2)
        # Rank 1 was killed just now, and the same job is started again at once.
        assert workers.run_job("j", 2).epoch == epoch + 1


async def test_a_job_whose_workers_have_died_with_the_controller_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next controller finds a job that runs, by the store, and hears nobody of it."""
    monkeypatch.setattr(leases, "FIRST_S", 1.0)

    def run(address: str) -> int:
        with workers_of(address) as workers:
            return workers.run_job("j", 2).epoch

    with SoftSwitch([UdpPort(1)]) as switch:
        settings = {
            "listen": "127.0.0.1:0",
            "switch": {"grpc_addr": switch.grpc_addr, "values": 64},
            "jobs": {"lease_s": 1.0},
            "store": {"path": str(tmp_path / "jobs.db")},
        }
        epochs = []
        for _ in range(2):
            async with ControllerApp(make_config(settings, "test")) as app:
                epochs.append(await asyncio.to_thread(run, app.listen_addr))
        assert epochs[0] < epochs[1]


def test_who_has_less_time_than_a_former_job_may_need_is_asked_to_come_again(
    workers: Workers,
) -> None:
    # As a worker with several controllers, which gives each a short time for an answer.
    epoch = workers.run_job("j", 2).epoch
    request = pb2.CreateJobRequest(name="j", world_size=2, wire_version=VERSION)
    with workers.alive("j", [1], epoch):
        workers.leave("j", 0, epoch)
        with refusal(grpc.StatusCode.UNAVAILABLE, "'j' is in use: it is leaving"):
            workers.stub.CreateJob(request, timeout=2)
    workers.leave("j", 1, epoch)
    assert workers.run_job("j", 2).epoch == epoch + 1


@pytest.mark.parametrize("call", ["Heartbeat", "Watch", "Leave"])
def test_each_call_of_a_member_needs_its_key(workers: Workers, call: str) -> None:
    epoch = workers.run_job("j", 2).epoch
    kind = {"Heartbeat": pb2.HeartbeatRequest, "Watch": pb2.WatchRequest, "Leave": pb2.LeaveRequest}

    def ask(rank: int, key: bytes, of_epoch: int = epoch) -> None:
        reply = getattr(workers.stub, call)(
            kind[call](name="j", rank=rank, epoch=of_epoch, member_key=key), timeout=20
        )
        if call == "Watch":
            next(reply)

    with workers.alive("j", [0, 1], epoch):
        for key in (b"guess", workers.keys["j", epoch, 1]):
            with refusal(grpc.StatusCode.PERMISSION_DENIED, "job 'j' rank 0: the member key is"):
                ask(0, key)
        with refusal(
            grpc.StatusCode.INVALID_ARGUMENT, "job 'j' rank 0: the call carries no member key"
        ):
            ask(0, b"")
        assert [list(job.joined) for job in workers.jobs()] == [[0, 1]]
        if call != "Leave":  # of which the end has come already
            with refusal(grpc.StatusCode.NOT_FOUND, "rank 0: epoch 7 of it has ended"):
                ask(0, workers.keys["j", epoch, 0], 7)
            with refusal(grpc.StatusCode.NOT_FOUND, "rank 2: epoch 1 of it has ended"):
                ask(2, b"any")


def test_lanes_that_the_job_does_not_have_are_refused(workers: Workers) -> None:
    epoch = workers.run_job("j", 1).epoch
    progress = pb2.Progress(lane_seqs=[1, 2, 3], lanes_waiting=b"\0")
    with refusal(grpc.StatusCode.INVALID_ARGUMENT, "reports 3 lanes .* the job has 4 lanes"):
        workers.heartbeat("j", 0, epoch, progress)
    workers.heartbeat("j", 0, epoch, pb2.Progress(lane_seqs=[1, 2, 3, 4], lanes_waiting=b"\0"))
