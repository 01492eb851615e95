"""Changes over gRPC and on a real soft switch: what workers and operators are told of them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import grpc
import pytest

from ina.cli import main
from ina.controller.embedded import Embedded
from ina.protocol.spec import path_of
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.switches import of_jobs
from tests.worlds.fakes.workers import Workers, refusal, workers_of

pytestmark = pytest.mark.usefixtures("quick_retries")

SLOTS, TOTAL = 512, 8192
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    sizing = {"jobs": {"sizing": "asked"}}
    with Embedded(values=64, slots=SLOTS, config=sizing) as embedded:
        yield embedded.controller_addr


@pytest.fixture
def workers(address: str) -> Iterator[Workers]:
    with workers_of(address) as them:
        yield them
        for job in them.jobs():
            them.evict(job.name)
        assert (of_jobs(them.show()), them.show().slots_used) == ([], 0)


def rows(workers: Workers, table: str) -> list[str]:
    return sorted(entry.match for entry in workers.show().entries if entry.table == table)


def jobs_rows(workers: Workers) -> list[str]:
    """But for the mark."""
    shown = workers.show().entries
    return sorted(entry.action for entry in shown if entry.table == "jobs" and entry.job)


def until_over(workers: Workers) -> None:
    for _ in range(1000):
        if not workers.show_job("j").job.HasField("remapping"):
            return
        time.sleep(0.01)
    raise AssertionError(f"it goes on and on: {workers.show_job('j')}")


def test_ranks_are_told_and_the_switch_has_both_then_one(workers: Workers) -> None:
    joined = workers.run_job("j", 2)
    epoch, (tree,) = joined.epoch, joined.trees
    with workers.watch("j", 1, epoch) as events:
        shown = workers.resize("j", 2048)
        to = shown.remapping.epoch
        assert to > epoch
        asked = pb2.ListDecisionsRequest(job="j")
        *_, last = workers.operator.ListDecisions(asked, timeout=30).decisions
        assert (last.what, last.slots, last.reason) == ("grow", 2048, "an operator asked for it")
        first = next(events)
        assert (first.kind, first.epoch, first.fatal) == (pb2.JOB_REMAPS, epoch, False)
        assert "2048 slots, 512..2559, window 1024: asked for by an operator" in first.reason
        assert [workers.heartbeat("j", rank, epoch).remaps_to for rank in (0, 1)] == [to, to]
        told = workers.remap("j", 1, epoch)
        assert told is not None
        assert (told.epoch, told.slots, told.window) == (to, 2048, 1024)
        assert (told.first_operation, told.waits, list(told.node_entities)) == (0, False, [])
        wider = pb2.Tree()
        wider.CopyFrom(tree)
        wider.worker, wider.path, wider.lanes = 1, path_of([1], [2]), 1024
        assert list(told.trees) == [wider]
        assert told.congestion == joined.congestion
        assert len(rows(workers, "members")) == 4
        assert len(rows(workers, "receivers")) == 2
        assert [line.partition(", full")[0] for line in jobs_rows(workers)] == [
            f"admit_job(epoch={epoch}, first_slot=0, slots=512",
            f"admit_job(epoch={to}, first_slot=512, slots=2048",
        ]
        assert workers.show().slots_used == 2560
        job = workers.show_job("j").job
        assert list(job.remapping.waits_for) == [0]
        assert (job.slots, job.mapping_epoch, job.remapping.stage) == (512, epoch, "asked")
        assert workers.follow_change("j", 2, epoch, 17) == to
        decided, over = next(events), next(events)
        assert (decided.kind, decided.reason) == (pb2.JOB_REMAPS, "from operation 17 on")
        assert over.kind == pb2.JOB_REMAPPED
        assert over.reason == "2048 slots, 512..2559, window 1024, from operation 17 on"
    job = workers.show_job("j").job
    assert (job.epoch, job.mapping_epoch, job.slots, job.window) == (epoch, to, 2048, 1024)
    assert (job.first_slot, job.HasField("remapping")) == (512, False)
    assert len(rows(workers, "members")) == 2
    assert workers.heartbeat("j", 0, epoch).remaps_to == 0
    for rank in range(2):  # as who it was when it joined
        workers.leave("j", rank, epoch)


def test_progress_is_of_the_mapping_that_it_names(workers: Workers) -> None:
    epoch = workers.run_job("j", 2).epoch
    to = workers.resize("j", 8).remapping.epoch
    former = pb2.Progress(in_flight=1, lane_seqs=[7] * 256, lanes_waiting=b"\1" + bytes(31))
    newer = pb2.Progress(mapping_epoch=to, lane_seqs=[7] * 4, lanes_waiting=b"\0")
    workers.heartbeat("j", 0, epoch, former)
    workers.heartbeat("j", 1, epoch, newer)
    wrong = pb2.Progress(mapping_epoch=to, lane_seqs=[7] * 256, lanes_waiting=bytes(32))
    with refusal(grpc.StatusCode.INVALID_ARGUMENT, "reports 256 lanes .* the job has 4 lanes"):
        workers.heartbeat("j", 0, epoch, wrong)
    workers.follow_change("j", 2, epoch, 1)
    until_over(workers)
    workers.heartbeat("j", 0, epoch, former)  # said just before it heard that all is over
    assert list(workers.show_job("j").members[0].progress.lane_seqs) == []
    workers.heartbeat("j", 0, epoch, newer)


def test_of_many_ranks_rank_0_alone_hears_that_it_is_asked(workers: Workers) -> None:
    epoch = workers.run_job("j", 2).epoch
    with workers.watch("j", 0, epoch) as of_0, workers.watch("j", 1, epoch) as of_1:
        to = workers.resize("j", 64).remapping.epoch
        assert workers.remap("j", 0, epoch) is None
        workers.remap("j", 1, epoch)
        workers.remap("j", 0, epoch, to, first_operation=3)
        for events, wanted in ((of_0, [0]), (of_1, [])):
            ranks = [list(next(events).ranks) for _ in range(2 + len(wanted))]
            assert ranks == [[], *([wanted] if wanted else []), []]


def test_what_is_wrong_is_refused_in_a_line(workers: Workers) -> None:
    with refusal(grpc.StatusCode.NOT_FOUND, "no job is called 'j'"):
        workers.resize("j", 4)
    epoch = workers.run_job("j", 2).epoch
    with refusal(grpc.StatusCode.INVALID_ARGUMENT, "job 'j': 7 slots: not an even number"):
        workers.resize("j", 7)
    with refusal(grpc.StatusCode.INVALID_ARGUMENT, "8194 slots: a job has 2 to 8192"):
        workers.resize("j", TOTAL + 2)
    with refusal(grpc.StatusCode.ALREADY_EXISTS, "job 'j' has 512 slots already"):
        workers.resize("j", SLOTS)
    to = workers.resize("j", 4).remapping.epoch
    with refusal(grpc.StatusCode.ALREADY_EXISTS, "job 'j' changes already: to 4 slots"):
        workers.resize("j", 8)
    with refusal(grpc.StatusCode.INVALID_ARGUMENT, "rank 0 alone says when to change"):
        workers.remap("j", 1, epoch, to, first_operation=3)
    with refusal(grpc.StatusCode.INVALID_ARGUMENT, "changes at operation 9223372036854775808"):
        workers.remap("j", 0, epoch, to, first_operation=1 << 63)
    workers.keys["j", epoch, 1] = b"another"
    with refusal(grpc.StatusCode.PERMISSION_DENIED, "member key is wrong"):
        workers.remap("j", 1, epoch, to)
    with refusal(grpc.StatusCode.NOT_FOUND, f"epoch {epoch + 9} of it has ended"):
        workers.keys["j", epoch + 9, 1] = b"another"
        workers.remap("j", 1, epoch + 9, to)


def test_an_operator_resizes_and_sees_what_became_of_it(
    workers: Workers, address: str, capsys: Capture
) -> None:
    epoch = workers.run_job("j", 2).epoch
    command = ["job", "resize", "j", "--controller", address]

    def follow() -> None:
        while not workers.heartbeat("j", 0, epoch).remaps_to:
            pass
        workers.follow_change("j", 2, epoch, 5)

    ranks = threading.Thread(target=follow)
    ranks.start()
    assert main.run([*command, "--slots", "1024", "--wait", "60"]) == 0
    ranks.join()
    said = capsys.readouterr().out
    assert said.startswith("resized j: 512 -> 1024 slots (512..1535), window 256 -> 512, in ")
    assert main.run([*command, "--slots", "64", "--wait", "0", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["changed"], shown["before"]["slots"]) == (False, 1024)
    assert shown["now"]["remapping"]["waits_for"] == [1]
    assert main.run(["job", "show", "j", "--controller", address]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "changes to 64 slots (0..63), window 512 -> 32: asked, waits for rank 1" in said
    assert main.run([*command, "--slots", "32"]) == 2
    assert "job 'j' changes already: to 64 slots (asked)" in capsys.readouterr().err

    def decline() -> None:
        to = 0
        while not to:
            to = workers.heartbeat("j", 0, epoch).remaps_to
        workers.remap("j", 1, epoch, to, declined=True)

    decline()
    ranks = threading.Thread(target=decline)
    ranks.start()
    assert main.run([*command, "--slots", "32", "--wait", "60"]) == 2
    ranks.join()
    failed = capsys.readouterr().err
    assert "job 'j' stays as it is: to 32 slots, 0..31, window 16: rank 1 declines" in failed
    assert main.run([*command, "--slots", "1"]) == 2
