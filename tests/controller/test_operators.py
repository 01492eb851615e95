"""What operators see and order, through the real service on a real soft switch."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from ina.controller.embedded import Embedded
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.switches import of_jobs
from tests.worlds.fakes.workers import Workers, is_clean, refusal, wait_for_members, workers_of

pytestmark = pytest.mark.usefixtures("quick_retries")

LANES = 4


@pytest.fixture
def workers() -> Iterator[Workers]:
    with (
        Embedded(values=64, slots=2 * LANES) as embedded,
        workers_of(embedded.controller_addr) as them,
    ):
        yield them


def progress(sent: int, waits: bool) -> pb2.Progress:
    """In lane 0 ``sent`` was sent last."""
    return pb2.Progress(
        lane_seqs=[sent, 1, 2, 3],
        lanes_waiting=bytes([int(waits)]),
        in_flight=int(waits),
        silent_s=5.0 if waits else 0.0,
        chunks_done=77,
    )


def test_a_job_is_shown_with_its_members_progress_counters_and_history(workers: Workers) -> None:
    workers.create("other", 1)
    joined = workers.run_job("j", 2)
    with workers.watch("j", 0, joined.epoch):
        workers.heartbeat("j", 1, joined.epoch, progress(4, waits=False))
        shown = workers.show_job("j")
    assert (shown.job.state, shown.job.tenant, shown.job.window) == ("running", "default", 4)
    assert shown.job.created_unix_s > 1e9
    first, second = shown.members
    assert (first.host, first.udp_port, first.switch_port) == ("127.0.0.1", 4000, 1)
    assert (first.watching, second.watching) == (True, False)
    assert (first.progress_unix_s, second.progress.chunks_done) == (0.0, 77)
    assert second.progress_unix_s > 1e9
    assert 0 < second.lease_left_s <= joined.lease_s
    assert {counter.job for counter in shown.counters} == {"j"}
    assert {counter.name for counter in shown.counters} >= {"job_results", "member_packets"}
    assert [event.kind for event in shown.history] == [
        pb2.JOB_CREATED,
        pb2.MEMBER_JOINED,
        pb2.MEMBER_JOINED,
        pb2.JOB_RUNNING,
    ]
    with refusal(grpc.StatusCode.NOT_FOUND, "no job is called 'none'"):
        workers.show_job("none")


def test_a_job_shows_what_became_of_its_workers_packets(workers: Workers) -> None:
    epoch = workers.run_job("j", 3).epoch
    (job,) = workers.jobs()
    assert not job.HasField("traffic")
    for rank in (0, 2):
        said = pb2.Progress(packets_sent=1000, losses=3 + rank, spurious_resends=20, probes=100)
        workers.heartbeat("j", rank, epoch, said)
    (job,) = workers.jobs()
    wanted = pb2.Traffic(packets_sent=2000, losses=8, spurious_resends=40, probes=200)
    assert job.traffic == workers.show_job("j").job.traffic == wanted


def test_who_is_missing_is_told_live_and_shown(workers: Workers) -> None:
    epoch = workers.run_job("j", 3).epoch
    with workers.watch_jobs("j") as events:
        workers.heartbeat("j", 2, epoch, progress(0, waits=False))
        for rank in (0, 1):
            workers.heartbeat("j", rank, epoch, progress(4, waits=True))
        event = next(events)
        assert (event.kind, list(event.ranks)) == (pb2.JOB_STALLED, [2])
        assert event.reason.startswith(
            "rank 2 (127.0.0.1:4002) has not sent sequence number 4 (slot 4): ranks 0, 1 waited for"
        )
        (job,) = workers.jobs()
        assert (job.stall.seq, job.stall.slot) == (4, 4)
        assert (list(job.stall.missing), list(job.stall.waiting)) == ([2], [0, 1])
        assert event.unix_s - job.stall.since_unix_s > 4.9
        for rank in range(3):
            workers.heartbeat("j", rank, epoch, progress(4, waits=False))
        assert next(events).kind == pb2.JOB_RESUMED
        assert not workers.jobs()[0].HasField("stall")


def test_an_evicted_jobs_workers_are_told_and_its_slots_are_free_at_once(workers: Workers) -> None:
    epoch = workers.run_job("j", 2).epoch
    with workers.watch("j", 1, epoch) as of_worker, workers.watch_jobs() as of_all:
        evicted = workers.evict("j", "the rack is\n being moved")
        assert is_clean(workers)
        told = [next(of_worker), next(of_worker)]
        assert [event.kind for event in told] == [pb2.JOB_EVICTED, pb2.JOB_ENDED]
        assert told[0].fatal
        assert told[0].reason == "evicted by an operator: the rack is being moved"
        assert list(of_worker) == []  # and the stream has ended
        assert [next(of_all).kind, next(of_all).kind] == [pb2.JOB_EVICTED, pb2.JOB_ENDED]
    assert evicted.job.epoch == epoch
    with refusal(grpc.StatusCode.NOT_FOUND, "no job is called 'j'"):
        workers.evict("j")
    workers.run_job("j", 2)


def test_a_job_that_still_waits_for_workers_is_evicted(workers: Workers) -> None:
    workers.create("j", 2)
    join = workers.join("j", 0)
    wait_for_members(workers, "j", [0])
    workers.evict("j", "not now")
    with refusal(grpc.StatusCode.ABORTED, "'j': evicted by an operator: not now"):
        join.result()
    assert is_clean(workers)


def test_entries_say_whose_they_are(workers: Workers) -> None:
    workers.run_job("a", 2)
    workers.run_job("b", 1, 5000)
    shown = workers.show()
    owners = [entry.job for entry in of_jobs(shown)]
    assert {name: owners.count(name) for name in owners} == {"a": 6, "b": 4}
    assert not any(entry.foreign for entry in of_jobs(shown))
    by_job = {(c.job, c.name) for c in shown.counters if c.name == "job_results"}
    assert by_job == {("a", "job_results"), ("b", "job_results")}
