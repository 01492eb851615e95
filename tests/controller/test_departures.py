"""A rank that leaves in the middle of what others have begun ends their job, and none else does."""

from __future__ import annotations

from ina.controller.embedded import Embedded
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.numbers import EpochCounter
from ina.controller.jobs.record import Record
from ina.controller.jobs.registry import Registry
from ina.controller.memory import StaticPool
from ina.controller.watch.failure_detector import FailureDetector
from ina.controller.watch.leases import Member
from ina.protocol.spec import ValueType
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.coordinator import Watched
from tests.worlds.fakes.switches import alone, switch_of
from tests.worlds.fakes.workers import is_clean, workers_of


def said(
    submitted: int, pending: int = 0, *, waits: bool = False, sent: bool = True
) -> pb2.Progress:
    """``pending``: the first operation that is not done; ``waits``: for three seconds already."""
    progress = pb2.Progress(
        operations_submitted=submitted,
        operations_done=pending - 1 if pending else submitted,
        in_flight=int(waits),
        silent_s=3.0 * waits,
        lane_seqs=[8 if sent else 6, 9],
        lanes_waiting=bytes([int(waits)]),
    )
    if pending:
        operation = pb2.Operation(number=pending, elems=1000, value_type=ValueType.FLOAT32)
        progress.oldest.CopyFrom(operation)
    return progress


async def leave(bench: Watched, rank: int, progress: pb2.Progress) -> None:
    bench.now_s += 0.1
    bench.detector.leaves(bench.registry.get("j"), rank, progress)
    await bench.coordinator.leave("j", rank, 1)


def restart(bench: Watched) -> None:
    """Another controller takes over what is in the store."""
    bench.registry = Registry(alone(StaticPool(64, 16)), EpochCounter(1), range(1, 9))
    bench.coordinator = Coordinator(
        bench.registry, [switch_of(bench.registry, bench.switch)], Record(bench.store.claim("next"))
    )
    bench.coordinator.restore(bench.store.load(bench.now_s))
    bench.detector = FailureDetector(bench.coordinator, 10.0, clock=lambda: bench.now_s)


def hear(bench: Watched, after_s: float, **ranks: pb2.Progress) -> list[str]:
    """What ranks (r0=, r1=) say after so long; the reasons of deaths so far."""
    bench.now_s += after_s
    for name, progress in ranks.items():
        bench.detector.heard(Member(1, int(name[1:])), progress)
    bench.detector.check()
    return bench.reasons(pb2.MEMBER_LOST)


async def test_who_begins_what_another_never_will_hears_it_at_once(bench: Watched) -> None:
    await bench.run()
    await leave(bench, 1, said(4))
    assert not hear(bench, 0.2, r0=said(4), r2=said(4))
    assert hear(bench, 0.2, r0=said(5, 5), r2=said(4)) == [
        "rank 1 (10.0.0.1:4001) has left after 4 operations and has not sent operation 5"
        " (sum of float32[1000]), for which rank 0 waits"
    ]
    assert bench.told()[-1] == ("MEMBER_LOST", [1], True)
    await bench.until_empty()


async def test_who_had_begun_it_before_hears_it_too(bench: Watched) -> None:
    await bench.run()
    hear(bench, 1.0, r0=said(5, 5, waits=True), r2=said(4))
    await leave(bench, 1, said(4))
    # What rank 2 said is older: it may have begun, and not have ended, what is complete.
    assert not hear(bench, 0.2, r0=said(5, 5, waits=True))
    assert len(hear(bench, 0.2, r2=said(4))) == 1


async def test_a_controller_that_starts_again_knows_who_has_left(bench: Watched) -> None:
    await bench.run()
    await leave(bench, 1, said(4))
    await leave(bench, 2, said(2**64 - 1))  # more than a database's integer
    restart(bench)
    bench.detector.check()
    assert not hear(bench, 0.2, r0=said(4))
    assert hear(bench, 0.2, r0=said(5, 5)) == [
        "rank 1 (10.0.0.1:4001) has left after 4 operations and has not sent operation 5"
        " (sum of float32[1000]), for which rank 0 waits"
    ]
    await bench.until_empty()


async def test_who_lost_its_copy_of_a_complete_sum_has_time_to_get_it(bench: Watched) -> None:
    await bench.run()
    await leave(bench, 1, said(4))
    assert not hear(bench, 0.5, r0=said(5, 5), r2=said(4, 4))
    assert not hear(bench, 0.5, r0=said(5, 5), r2=said(4, 4))
    assert len(hear(bench, 0.5, r0=said(5, 5), r2=said(4))) == 1


async def test_an_orderly_end_ends_nothing(bench: Watched) -> None:
    await bench.run()
    hear(bench, 1.0, r0=said(4, 4), r1=said(4, 4), r2=said(4, 3))
    await leave(bench, 1, said(4))
    for _ in range(20):
        assert not hear(bench, 1.0, r0=said(4, 4, waits=True), r2=said(4))
    await leave(bench, 2, said(4))
    assert not hear(bench, 1.0, r0=said(4))
    await leave(bench, 0, said(4))
    assert not hear(bench, 1.0)
    await bench.until_empty()


async def test_who_leaves_in_the_middle_of_a_sum_is_named_once_nothing_comes(
    bench: Watched,
) -> None:
    await bench.run()
    stuck = said(4, 4, waits=True)
    hear(bench, 1.0, r0=stuck, r1=said(4, 4), r2=stuck)
    last = said(4, 4)
    last.ClearField("oldest")  # begun a moment before
    await leave(bench, 1, last)
    bench.unreachable_s = 1.0  # it may be the switch
    for _ in range(5):
        assert not hear(bench, 1.0, r0=stuck, r2=stuck)
    bench.unreachable_s = 0.0
    assert hear(bench, 1.0, r0=stuck, r2=stuck) == [
        "rank 1 (10.0.0.1:4001) has left after 3 operations and has not finished operation 4"
        " (sum of float32[1000]), for which rank 0 waits"
    ]


async def test_who_waits_for_a_rank_that_is_there_is_left_alone(bench: Watched) -> None:
    await bench.run()
    await leave(bench, 1, said(4, 4))
    for _ in range(10):
        assert not hear(bench, 1.0, r0=said(4, 4, waits=True), r2=said(3, sent=False))


async def test_a_stall_is_told_again_at_growing_intervals(bench: Watched) -> None:
    await bench.run()
    for second in range(250):
        stuck = said(4, 4, waits=True)
        stuck.silent_s = 3.0 + second
        hear(bench, 1.0, r0=stuck, r1=said(4, 4, sent=False), r2=stuck)
    waited = [reason.rpartition("waited for ")[2] for reason in bench.reasons(pb2.JOB_STALLED)]
    assert waited == ["3.0 s", "10.0 s", "30.0 s", "60.0 s", "120.0 s", "240.0 s"]


def test_who_comes_back_to_its_stream_hears_that_the_job_stands_still() -> None:
    waits, late = said(1, 1, waits=True), said(0, sent=False)
    waits.silent_s = 3600.0  # it would be told again after another hour
    with (
        Embedded(values=64, slots=4) as embedded,
        workers_of(embedded.controller_addr) as workers,
    ):
        epoch = workers.run_job("j", 2).epoch
        with workers.alive("j", [0, 1], epoch):
            for _ in range(2):
                with workers.watch("j", 0, epoch) as events:
                    workers.heartbeat("j", 1, epoch, late)
                    workers.heartbeat("j", 0, epoch, waits)
                    stalled = next(event for event in events if event.kind == pb2.JOB_STALLED)
                    assert list(stalled.ranks) == [1]
                    assert "rank 0 waited for 3600" in stalled.reason


def test_the_others_hear_it_through_the_service_and_the_name_is_free() -> None:
    with (
        Embedded(values=64, slots=4) as embedded,
        workers_of(embedded.controller_addr) as workers,
    ):
        epoch = workers.run_job("j", 2).epoch
        with workers.watch("j", 0, epoch) as events:
            workers.leave("j", 1, epoch, said(4))
            workers.heartbeat("j", 0, epoch, said(5, 5))
            lost = next(event for event in events if event.kind == pb2.MEMBER_LOST)
            next(event for event in events if event.kind == pb2.JOB_ENDED)
        assert (list(lost.ranks), lost.fatal) == ([1], True)
        assert is_clean(workers)
        workers.run_job("j", 2)


async def test_who_gives_up_is_named_with_why(bench: Watched) -> None:
    await bench.run()
    bench.now_s += 0.1
    bench.detector.leaves(bench.registry.get("j"), 1, said(4), "no result for 30.0 s")
    await bench.coordinator.leave("j", 1, 1)
    assert hear(bench, 0.2, r0=said(5, 5), r2=said(4)) == [
        "rank 1 (10.0.0.1:4001) has left after 4 operations and has not sent operation 5"
        " (sum of float32[1000]), for which rank 0 waits; it gave up: no result for 30.0 s"
    ]


async def test_a_switch_that_a_rank_has_lost_is_named(bench: Watched) -> None:
    await bench.run()
    why = "the switch is gone: nothing has listened at 10.0.0.9:17760 for 10 s"
    bench.unreachable_s = 4.0
    bench.detector.gives_up(bench.registry.get("j"), 1, why, pb2.SWITCH_LOST)
    assert bench.told()[-1] == ("SWITCH_LOST", [], True)
    assert bench.reasons(pb2.SWITCH_LOST) == [
        "the switch is lost: the controller has not reached it for 4 s, rank 1 (10.0.0.1:4001) has"
        f" left: {why}"
    ]
    await bench.until_empty()


async def test_what_a_rank_that_left_had_sent_is_not_missing(bench: Watched) -> None:
    """Its packet is lost on the way, and it does not send it again."""
    await bench.run()
    stuck = said(4, 4, waits=True)
    hear(bench, 1.0, r0=stuck, r1=stuck, r2=stuck)
    await leave(bench, 1, said(4, 4, waits=True))
    found = hear(bench, 3.0, r0=stuck, r2=stuck) or hear(bench, 3.0, r0=stuck, r2=stuck)
    assert not any("rank 1" in it for it in bench.reasons(pb2.JOB_STALLED))
    assert found == [
        "rank 1 (10.0.0.1:4001) has left after 3 operations and has not finished operation 4"
        " (sum of float32[1000]), for which rank 0 waits"
    ]


def test_a_rank_that_has_lost_the_switch_ends_the_job_for_that() -> None:
    with (
        Embedded(values=64, slots=4) as embedded,
        workers_of(embedded.controller_addr) as workers,
    ):
        for kind in (pb2.SWITCH_LOST, pb2.SUMS_CORRUPTED):
            epoch = workers.run_job("j", 2).epoch
            with workers.watch("j", 0, epoch) as events:
                workers.leave("j", 1, epoch, said(4, 4), ("it\nis gone", kind))
                end = next(event for event in events if event.fatal)
                next(event for event in events if event.kind == pb2.JOB_ENDED)
            assert end.kind == kind
            assert end.reason.endswith("has left: it is gone")
            assert is_clean(workers)
        epoch = workers.run_job("j", 2).epoch  # nobody is left to be told
        for rank in range(2):
            workers.leave("j", rank, epoch, said(4), ("it is gone", pb2.RANKS_DIFFER))
        assert is_clean(workers)
