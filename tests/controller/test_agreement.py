"""Ranks that reduce different things are told how they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager

import numpy as np
import pytest

from ina.controller.embedded import Embedded
from ina.controller.watch import failure_detector
from ina.controller.watch.agreement import find_difference
from ina.host import RanksDifferError, Session
from ina.host.arrays import Array
from ina.protocol.collective import Reduction
from ina.rpc import controller_pb2 as pb2
from ina.rpc.controller_pb2 import Operation, Progress
from tests.worlds.fakes.coordinator import Watched

F32 = 1
BIG, SMALL, AVG = (
    Operation(number=9, elems=64, value_type=F32),
    Operation(number=9, elems=32),
    Operation(number=9, elems=64, value_type=F32, reduction=Reduction.AVERAGE),
)
BEFORE = Operation(number=8, elems=5)


def report(*submitted: Operation, in_all: int = 9, differs_at: int = 0) -> Progress:
    return Progress(submitted=submitted, operations_submitted=in_all, differs_at=differs_at)


def reason(reports: dict[int, Progress], world_size: int, left: tuple[int, ...] = ()) -> str:
    found = find_difference(reports, world_size, left)
    assert found is not None
    return f"{found.reason}{'' if found.is_whole else ' ...'}"


def test_ranks_that_agree_so_far() -> None:
    assert find_difference({}, 3) is None
    assert find_difference({0: report()}, 3) is None
    assert find_difference({0: report(BEFORE, BIG), 1: report(BIG), 2: report()}, 3) is None
    later = Progress(oldest=Operation(number=10, elems=1))
    assert find_difference({0: report(BEFORE, BIG), 1: later}, 2) is None


def test_each_group_is_named() -> None:
    reports = {2: report(SMALL), 0: report(BEFORE, BIG), 1: report(BIG), 3: report(AVG)}
    assert reason(reports, 4) == (
        "ranks differ in all-reduce 9: ranks 0, 1: sum of float32[64]; "
        "rank 2: sum of int32[32]; rank 3: avg of float32[64]"
    )


def test_the_first_difference_is_the_one() -> None:
    other = Operation(number=8, elems=6)
    reports = {0: report(BEFORE, BIG, differs_at=9), 1: report(other, SMALL, differs_at=9)}
    assert reason(reports, 2) == (
        "ranks differ in all-reduce 8: rank 0: sum of int32[5]; rank 1: sum of int32[6]"
    )


def test_what_is_not_known_yet_may_come() -> None:
    reports = {0: report(BIG), 1: report(SMALL), 2: report(in_all=12)}
    assert reason(reports, 4) == (
        "ranks differ in all-reduce 9: rank 0: sum of float32[64]; rank 1: sum of int32[32]; "
        "ranks 2, 3: not known ..."
    )
    assert reason({0: report(BIG, differs_at=9)}, 2) == (
        "ranks differ in all-reduce 9: rank 0: sum of float32[64]; rank 1: not known ..."
    )


def test_ranks_that_agree_whatever_a_result_holds() -> None:
    """Bits that flip may look like ranks that differ."""
    reports = {0: report(BIG, differs_at=9), 1: report(BIG)}
    found = find_difference(reports, 2)
    assert found is not None
    assert found.is_damage
    assert reason(reports, 2) == (
        "a result of all-reduce 9 is not of what all ranks have submitted alike (ranks 0, 1: sum of"
        " float32[64]): a packet has been changed on its way, or the switch's memory"
    )


def test_a_rank_that_has_left() -> None:
    reports = {0: report(BIG), 1: report(SMALL)}
    assert reason(reports, 2, (1,)) == (
        "ranks differ in all-reduce 9: rank 0: sum of float32[64]; "
        "rank 1 (has left): sum of int32[32]"
    )
    reports[2] = report(in_all=8)
    assert reason(reports, 3, (2,)) == (
        "ranks differ in all-reduce 9: rank 0: sum of float32[64]; rank 1: sum of int32[32]; "
        "rank 2 (has left): nothing, it has submitted 8 in all"
    )


async def test_all_are_asked_and_the_job_ends_when_they_have_answered(bench: Watched) -> None:
    await bench.run()
    say: Callable[[int, Progress], None] = lambda rank, said: bench.detector.heard(  # noqa: E731
        bench.member(rank), said
    )
    say(0, report(BIG, differs_at=9))
    bench.detector.check()
    assert bench.told()[-1] == ("RANKS_DIFFER", [], False)
    say(1, report(SMALL, differs_at=9))
    bench.detector.check()
    assert bench.told()[-1] == ("RANKS_DIFFER", [], False)
    say(2, report(BIG))
    bench.detector.check()
    assert bench.told()[-1] == ("RANKS_DIFFER", [], True)
    assert bench.reasons(pb2.RANKS_DIFFER)[1:] == [
        "ranks differ in all-reduce 9: ranks 0, 2: sum of float32[64]; rank 1: sum of int32[32]"
    ]
    await bench.until_empty()


async def test_ranks_that_do_not_differ_hear_that_their_sums_are_corrupted(bench: Watched) -> None:
    await bench.run()
    bench.detector.heard(bench.member(0), report(BIG, differs_at=9))
    bench.detector.heard(bench.member(1), report(BIG))
    bench.detector.check()
    assert bench.told()[-1] == ("RANKS_DIFFER", [], False)
    bench.detector.heard(bench.member(2), report(BEFORE, BIG))
    bench.detector.check()
    assert bench.told()[-1] == ("SUMS_CORRUPTED", [], True)
    await bench.until_empty()


async def test_who_does_not_answer_is_not_waited_for(bench: Watched) -> None:
    await bench.run()
    bench.detector.heard(bench.member(0), report(BIG, differs_at=9))
    bench.detector.heard(bench.member(1), report(SMALL, differs_at=9))
    bench.detector.check()
    bench.go(1)
    assert bench.told()[-1] == ("RANKS_DIFFER", [], True)
    assert bench.reasons(pb2.RANKS_DIFFER)[-1].endswith("rank 2: not known")
    await bench.until_empty()


async def test_reports_that_agree_are_not_put_side_by_side_at_each_look(bench: Watched) -> None:
    """With many ranks and operations that takes the time that a rank's own Python needs."""
    await bench.run()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(failure_detector, "find_difference", None)
        for number in range(9, 9 + 10_000, 100):
            listed = [Operation(number=number + n, elems=64) for n in range(150)]
            for rank in range(3):
                bench.detector.heard(bench.member(rank), report(*listed))
            bench.detector.check()
    assert len(bench.detector._agreements[1]._known) < 10_000
    bench.detector.heard(bench.member(0), report(Operation(number=number + 1, elems=63)))
    bench.detector.check()
    assert bench.told()[-1] == ("RANKS_DIFFER", [], True)


async def test_what_only_an_older_report_contradicts_ends_nothing(bench: Watched) -> None:
    await bench.run()
    bench.detector.heard(bench.member(0), report(BIG))
    bench.detector.heard(bench.member(0), report())
    bench.detector.heard(bench.member(1), report(SMALL))
    bench.detector.check()
    assert not bench.reasons(pb2.RANKS_DIFFER)
    bench.detector.heard(bench.member(2), report(BIG))
    bench.detector.check()
    assert len(bench.reasons(pb2.RANKS_DIFFER)) == 1


@contextmanager
def job(embedded: Embedded, name: str, world_size: int) -> Iterator[list[Session]]:
    with futures.ThreadPoolExecutor(world_size) as pool:
        joining = [
            pool.submit(Session.join, embedded.controller_addr, name, rank, world_size)
            for rank in range(world_size)
        ]
        sessions = [future.result(60) for future in joining]
        try:
            yield sessions
        finally:
            for session in sessions:
                session.close()


@pytest.fixture(scope="module")
def embedded() -> Iterator[Embedded]:
    with Embedded(values=64) as running:
        yield running


ODD = {
    "one element more": (np.ones(1001, np.float32), "sum", "sum of float32[1001]"),
    "integers": (np.ones(1000, np.int32), "sum", "sum of int32[1000]"),
    "average": (np.ones(1000, np.float32), "avg", "avg of float32[1000]"),
}


@pytest.mark.parametrize("world_size", [2, 3, 4])
@pytest.mark.parametrize("kind", ODD)
def test_no_wrong_sum_comes_out(kind: str, world_size: int, embedded: Embedded) -> None:
    odd, op, described = ODD[kind]
    with job(embedded, f"{kind} {world_size}", world_size) as sessions:
        for _ in range(2):  # what agrees is summed
            handles = [s.all_reduce(np.ones(500, np.float32), async_op=True) for s in sessions]
            assert all((handle.wait(30) == world_size).all() for handle in handles)
        arrays: list[Array] = [np.ones(1000, np.float32)] * (world_size - 1)
        started = [s.all_reduce(a, async_op=True) for s, a in zip(sessions, arrays, strict=False)]
        started.append(sessions[-1].all_reduce(odd, op, async_op=True))
        *others, last = range(world_size)
        names = f"rank{'s' * (world_size > 2)} {', '.join(map(str, others))}"
        for handle in started:
            with pytest.raises(RanksDifferError) as told:
                handle.wait(30)
            assert str(told.value).endswith(
                f"ranks differ in all-reduce 3: {names}: sum of float32[1000];"
                f" rank {last}: {described}"
            )


def test_what_a_rank_had_submitted_that_has_left_is_told(embedded: Embedded) -> None:
    with job(embedded, "left", 2) as sessions:
        member = sessions[1]._core.member
        assert member is not None
        sessions[1]._driver.run(member.stop())  # only its leaving tells what comes now
        sessions[1].all_reduce(np.ones(1001, np.float32), async_op=True)
        sessions[1].close()  # before anybody can see that it is another size
        with pytest.raises(RanksDifferError) as told:
            sessions[0].all_reduce(np.ones(1000, np.float32))
        assert str(told.value).endswith(
            "ranks differ in all-reduce 1: rank 0: sum of float32[1000];"
            " rank 1 (has left): sum of float32[1001]"
        )


def test_lanes_that_do_not_meet(embedded: Embedded) -> None:
    """Nobody gets a result, so nobody notices; heartbeats tell."""
    with job(embedded, "apart", 2) as sessions:
        sizes = [(64, 128)] * 2
        for small, large in sizes:
            for elems in (small, large):
                handles = [
                    s.all_reduce(np.ones(elems, np.float32), async_op=True) for s in sessions
                ]
                assert all((handle.wait(30) == 2).all() for handle in handles)
        started = [
            session.all_reduce(np.ones(elems, np.float32), async_op=True)
            for session, elems in zip(sessions, sizes[0], strict=True)
        ]
        for handle in started:
            with pytest.raises(
                RanksDifferError, match=r"rank 0: sum of float32\[64\]; rank 1: sum"
            ):
                handle.wait(30)
