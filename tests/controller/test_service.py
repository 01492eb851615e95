"""The service on a real soft switch: what is installed, what is refused, what is left behind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import grpc
import pytest

from ina.controller.embedded import Embedded
from ina.protocol.serial import is_newer
from ina.protocol.spec import VERSION
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.switches import of_jobs
from tests.worlds.fakes.workers import Workers, is_clean, refusal, wait_for_members, workers_of

pytestmark = pytest.mark.usefixtures("quick_retries")

SLOTS = 2048  # of 8192: room for four jobs


@pytest.fixture
def workers() -> Iterator[Workers]:
    with Embedded(values=64, slots=SLOTS) as embedded, workers_of(embedded.controller_addr) as them:
        yield them


def test_a_job_is_installed_and_leaves_nothing(workers: Workers) -> None:
    assert workers.create("j", 2).slots == SLOTS
    assert not of_jobs(workers.show())
    joined = workers.run_job("j", 2)
    assert (joined.epoch, joined.world_size, joined.slots) == (1, 2, SLOTS)
    shown = workers.show()
    assert [(entry.table, entry.match, entry.action) for entry in of_jobs(shown)] == [
        (
            "jobs",
            "job=1 epoch=1",
            f"admit_job(epoch=1, first_slot=0, slots={SLOTS}, full_bitmap=3, group=16385,"
            " job_index=1)",
        ),
        *[
            (
                "members",
                f"ingress_port=1 src_addr=127.0.0.1 src_port={4000 + rank} job=1 epoch=1"
                f" worker={rank} kind=contribution (rank {rank})",
                f"admit_member(worker_bit={1 << rank})",
            )
            for rank in range(2)
        ],
        *[
            (
                "receivers",
                f"job=1 worker={rank} (rank {rank})",
                f"address(dst_mac=02:00:7f:00:00:01, dst_addr=127.0.0.1, dst_port={4000 + rank},"
                f" way={rank << 10}, way_mask=3072, strips_on=4, strips_off=2)",
            )
            for rank in range(2)
        ],
        ("multicast group", "group=16385 (job j)", "replicate(1#1 1#2)"),
    ]
    assert (shown.slots_used, shown.slots_total) == (SLOTS, 8192)
    assert [job.state for job in workers.jobs()] == ["running"]

    workers.leave("j", 0, joined.epoch)
    left = [entry.match for entry in of_jobs(workers.show()) if entry.table == "members"]
    assert ["worker=1 " in match for match in left] == [True]
    assert [(job.state, list(job.joined)) for job in workers.jobs()] == [("leaving", [1])]
    workers.leave("j", 1, joined.epoch)
    assert is_clean(workers)


def test_a_restarted_job_gets_a_newer_epoch_and_late_leaves_do_not_touch_it(
    workers: Workers,
) -> None:
    first = workers.run_job("j", 1)
    workers.leave("j", 0, first.epoch)
    second = workers.run_job("j", 1)
    assert is_newer(second.epoch, first.epoch)
    workers.leave("j", 0, first.epoch)
    assert [job.epoch for job in workers.jobs()] == [second.epoch]


def test_create_waits_for_the_former_job_to_end(workers: Workers) -> None:
    first = workers.run_job("j", 2)
    workers.leave("j", 0, first.epoch)
    request = pb2.CreateJobRequest(name="j", world_size=3, wire_version=VERSION)
    created = workers.stub.CreateJob.future(request, timeout=20)
    workers.leave("j", 1, first.epoch)
    assert created.result().slots == SLOTS
    assert [(job.world_size, job.state) for job in workers.jobs()] == [(3, "joining")]


@pytest.mark.parametrize("version", [0, VERSION - 1, VERSION + 1])
def test_a_worker_of_another_wire_format_is_refused(workers: Workers, version: int) -> None:
    """Its packets would be dropped, and the job would wait for them."""
    said = rf"packets of wire format {version}, the controller's switch takes {VERSION}; install"
    with refusal(grpc.StatusCode.INVALID_ARGUMENT, said):
        request = pb2.CreateJobRequest(name="j", world_size=2, wire_version=version)
        workers.stub.CreateJob(request, timeout=5.0)
    assert workers.jobs() == []


def test_a_former_job_that_does_not_end_is_named(workers: Workers) -> None:
    first = workers.run_job("j", 2)
    workers.leave("j", 0, first.epoch)
    with refusal(grpc.StatusCode.UNAVAILABLE, r"leaving \(epoch 1, ranks here: 1\)"):
        again = pb2.CreateJobRequest(name="j", world_size=2, wire_version=VERSION)
        workers.stub.CreateJob(again, timeout=1.0)


def test_a_join_that_times_out_names_the_missing_ranks_to_all(workers: Workers) -> None:
    workers.create("j", 4)
    patient = workers.join("j", 2)
    wait_for_members(workers, "j", [2])
    hasty = workers.join("j", 0, timeout_s=0.3)
    said = "job 'j': ranks 1, 3 of 4 did not join within the 0.3 s of rank 0"
    for join in (hasty, patient):
        with refusal(grpc.StatusCode.DEADLINE_EXCEEDED, said):
            join.result()
    assert is_clean(workers)


def test_a_worker_that_hangs_up_can_join_again(workers: Workers) -> None:
    workers.create("j", 3)
    request = pb2.JoinRequest(name="j", rank=1, host="127.0.0.1", udp_port=4001, timeout_s=20)
    hung_up: Any = workers.stub.Join.future(request)
    wait_for_members(workers, "j", [1])
    waiting = workers.join("j", 0)
    wait_for_members(workers, "j", [0, 1])
    hung_up.cancel()
    wait_for_members(workers, "j", [0])
    joins = [waiting, *(workers.join("j", rank) for rank in (1, 2))]
    assert {join.result().epoch for join in joins} == {1}


@pytest.mark.parametrize("world_size", [0, 33])
def test_one_switch_sums_1_to_32_workers(workers: Workers, world_size: int) -> None:
    with refusal(
        grpc.StatusCode.INVALID_ARGUMENT, f"{world_size} workers: one switch sums 1 to 32"
    ):
        workers.create("j", world_size)
    assert is_clean(workers)


def test_32_workers_are_installed(workers: Workers) -> None:
    joined = workers.run_job("j", 32)
    shown = workers.show()
    assert sum(entry.table == "members" for entry in of_jobs(shown)) == 32
    assert any(f"full_bitmap={2**32 - 1}" in entry.action for entry in of_jobs(shown))
    for rank in range(32):
        workers.leave("j", rank, joined.epoch)
    assert is_clean(workers)


def test_contradictions_are_refused(workers: Workers) -> None:
    workers.create("j", 3)
    waiting = workers.join("j", 0)
    wait_for_members(workers, "j", [0])
    with refusal(grpc.StatusCode.ALREADY_EXISTS, "created with 3 workers, not 2"):
        workers.create("j", 2)
    with refusal(grpc.StatusCode.ALREADY_EXISTS, "rank 0 has joined already, from 127.0.0.1:4000"):
        workers.join("j", 0).result()
    with refusal(grpc.StatusCode.ALREADY_EXISTS, "rank 1 has the address of rank 0"):
        workers.join("j", 1, udp_port=4000).result()
    with refusal(grpc.StatusCode.INVALID_ARGUMENT, "ranks 0 to 2, not 3"):
        workers.join("j", 3).result()
    with refusal(grpc.StatusCode.NOT_FOUND, "no job is called 'other'"):
        workers.join("other", 0).result()
    rest = [workers.join("j", rank) for rank in (1, 2)]
    assert len({join.result().epoch for join in [waiting, *rest]}) == 1
    with refusal(grpc.StatusCode.ALREADY_EXISTS, "'j' is in use: it is running"):
        workers.create("j", 3)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"host": "example"}, "host 'example' is not an IPv4 address"),
        ({"host": "0.0.0.0"}, "host 0.0.0.0 is not one worker's address"),
        ({"udp_port": 0}, "UDP port 0 is not in 1..65535"),
        ({"udp_port": 65536}, "UDP port 65536 is not in 1..65535"),
        ({"timeout_s": 0.0}, "timeout 0 s"),
        ({"timeout_s": float("nan")}, "timeout nan s"),
    ],
)
def test_a_malformed_join_is_refused(
    workers: Workers, change: dict[str, str | float], said: str
) -> None:
    workers.create("j", 2)
    request = pb2.JoinRequest(name="j", rank=1, host="127.0.0.1", udp_port=1, timeout_s=9)
    for key, value in change.items():
        setattr(request, key, value)
    with refusal(grpc.StatusCode.INVALID_ARGUMENT, f"job 'j' rank 1: {said}"):
        workers.stub.Join(request, timeout=20)


def test_slots_that_run_out_are_refused_with_numbers(workers: Workers) -> None:
    for name in "abcd":
        workers.create(name, 1)
    with refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, f"all 4 ranges of {SLOTS} slots are in use"):
        workers.create("e", 1)
    with refusal(grpc.StatusCode.ALREADY_EXISTS, "created with 1 workers, not 2"):
        workers.create("a", 2)


def test_jobs_side_by_side_share_nothing(workers: Workers) -> None:
    replies = {name: workers.run_job(name, 2, port) for name, port in (("a", 4000), ("b", 5000))}
    jobs = {job.name: job for job in workers.jobs()}
    assert len({job.first_slot for job in jobs.values()}) == 2
    assert len({job.job for job in jobs.values()}) == 2
    assert replies["a"].epoch != replies["b"].epoch
    for rank in range(2):
        workers.leave("a", rank, replies["a"].epoch)
    numbers = {
        entry.match.partition("job=")[2].partition(" ")[0] for entry in of_jobs(workers.show())
    }
    assert numbers - {"", "b)"} == {str(jobs["b"].job)}


def test_many_starts_at_once(workers: Workers) -> None:
    joins: list[tuple[str, int, Future[pb2.JoinReply]]] = []
    for index, name in enumerate("abcd"):
        workers.create(name, 4)
        joins += [
            (name, rank, workers.join(name, rank, udp_port=4000 + 10 * index + rank))
            for rank in range(4)
        ]
    epochs = {(name, rank): join.result().epoch for name, rank, join in joins}
    assert len(set(epochs.values())) == 4
    for (name, rank), epoch in epochs.items():
        workers.leave(name, rank, epoch)
    assert is_clean(workers)


def test_what_no_worker_can_report_is_refused_with_heartbeats_and_last_words(
    workers: Workers,
) -> None:
    epoch = workers.run_job("j", 1).epoch
    for progress in (pb2.Progress(silent_s=math.inf), pb2.Progress(lane_seqs=[1, 2, 3])):
        for say in (workers.heartbeat, workers.leave):
            with refusal(grpc.StatusCode.INVALID_ARGUMENT, "job 'j' rank 0: reports"):
                say("j", 0, epoch, progress)
    assert workers.jobs()[0].joined == [0]
    workers.leave("j", 0, epoch)


def test_a_worker_behind_shared_memory_is_shown_by_its_process(workers: Workers) -> None:
    workers.create("j", 2)
    first = workers.join("j", 0, host="127.64.0.1", udp_port=1, process="node7 pid 11")
    wait_for_members(workers, "j", [0])
    with pytest.raises(grpc.RpcError, match="rank 0 has joined already, from node7 pid 11"):
        workers.join("j", 0, host="127.64.0.9", udp_port=1).result()
    second = workers.join("j", 1, host="10.0.0.2", udp_port=4001, process="node8 pid 12")
    epoch = first.result().epoch
    assert second.result().epoch == epoch
    shown = workers.show_job("j")
    assert [member.process for member in shown.members] == ["node7 pid 11", "node8 pid 12"]
    joined = [event.reason for event in shown.history if event.kind == pb2.MEMBER_JOINED]
    assert joined == ["from node7 pid 11", "from 10.0.0.2:4001"]
    # As a controller that was restarted hears it: from a heartbeat, and fit for a terminal.
    workers.heartbeat("j", 0, epoch, process="node\x1b[2J pid 13")
    assert workers.show_job("j").members[0].process == "node?[2J pid 13"
    workers.heartbeat("j", 0, epoch)
    assert workers.show_job("j").members[0].process == "node?[2J pid 13"
    for rank in range(2):
        workers.leave("j", rank, epoch)
