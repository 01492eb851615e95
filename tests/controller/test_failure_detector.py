"""The failure detector on a coordinator with a recording switch and a clock of the test's own."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ina.controller.errors import StoreError
from ina.controller.watch import failure_detector
from ina.controller.watch.leases import Member
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.coordinator import Watched


class Handler(logging.Handler):
    def __init__(self, into: list[logging.LogRecord]) -> None:
        super().__init__()
        self._into = into

    def emit(self, record: logging.LogRecord) -> None:
        self._into.append(record)


async def test_a_dead_worker_ends_its_job_and_is_named(bench: Watched) -> None:
    await bench.run()
    bench.go(9, alive=(0, 1, 2), progress="ooo")
    bench.go(9, alive=(0, 1))
    assert len(bench.registry) == 1
    bench.go(1, alive=(0, 1))
    assert bench.told()[-1] == ("MEMBER_LOST", [2], True)
    assert bench.reasons(pb2.MEMBER_LOST) == [
        "rank 2 (10.0.0.1:4002) is dead, stopped or not running Python: no heartbeat for 10 s,"
        " last sequence number 9"
    ]
    await bench.until_empty()


async def test_of_a_worker_that_said_nothing_the_others_tell_where_they_are(
    bench: Watched,
) -> None:
    await bench.run()
    bench.go(10, alive=(0, 1), progress="ow")
    assert bench.reasons(pb2.MEMBER_LOST) == [
        "rank 2 (10.0.0.1:4002) is dead, stopped or not running Python: no heartbeat for 10 s;"
        " the others wait for sequence number 8"
    ]


async def test_workers_that_never_heartbeat_are_dead_too(bench: Watched) -> None:
    await bench.run()
    bench.go(10)
    assert bench.told()[-1] == ("MEMBER_LOST", [0, 1, 2], True)
    bench.go(10)
    assert len(bench.reasons(pb2.MEMBER_LOST)) == 1
    await bench.until_empty()


async def test_sums_that_complete_keep_all_alive(bench: Watched) -> None:
    await bench.run()
    for chunks in range(15):
        progress = pb2.Progress(chunks_done=10 + chunks, in_flight=1, silent_s=0.1)
        bench.detector.heard(Member(1, 0), progress)
        bench.go(2, alive=())
    assert not bench.reasons(pb2.MEMBER_LOST)
    bench.go(7, alive=(0,), progress="d")  # no chunks any more
    assert not bench.reasons(pb2.MEMBER_LOST)
    bench.go(4, alive=(0,), progress="d")
    assert bench.told()[-1] == ("MEMBER_LOST", [1, 2], True)


async def test_who_has_left_is_not_missed(bench: Watched) -> None:
    await bench.run()
    await bench.coordinator.leave("j", 2, 1)
    bench.go(30, alive=(0, 1))
    assert bench.told()[-1][0] == "MEMBER_LEFT"


async def test_a_broken_stream_and_silence_is_a_death(bench: Watched) -> None:
    await bench.run()
    with bench.detector.watching(Member(1, 1)):
        bench.go(2, alive=(0, 1, 2))
    bench.go(3, alive=(0, 2))
    assert bench.reasons(pb2.MEMBER_LOST) == [
        "rank 1 (10.0.0.1:4001) has died, or is stopped: its connection broke and no heartbeat"
        " came for 3 s"
    ]


async def test_a_stall_is_told_once_again_when_others_are_missing_and_when_it_is_over(
    bench: Watched,
) -> None:
    job = await bench.run()
    bench.go(3, alive=(0, 1, 2), progress="woo")
    assert bench.reasons(pb2.JOB_STALLED) == [
        "rank 1 (10.0.0.1:4001), rank 2 (10.0.0.1:4002) have not sent sequence number 8 (slot 0):"
        " rank 0 waited for 3.0 s"
    ]
    bench.go(3, alive=(0, 1, 2), progress="wwo")
    assert bench.told()[-2:] == [("JOB_STALLED", [1, 2], False), ("JOB_STALLED", [2], False)]
    stall = bench.detector.stall(job)
    assert stall is not None
    assert bench.detector.since_unix_s(stall) == bench.now_s - 3.0 + 1e9
    bench.go(1, alive=(0, 1, 2), progress="ddd")
    assert bench.told()[-1] == ("JOB_RESUMED", [], False)
    assert bench.detector.stall(job) is None


async def test_a_job_whose_waiting_rank_gave_up_and_left_does_not_go_on(bench: Watched) -> None:
    job = await bench.run()
    bench.go(3, alive=(0, 1, 2), progress="woo")
    assert bench.detector.stall(job) is not None
    await bench.coordinator.leave("j", 0, 1)
    bench.go(1, alive=(1, 2), progress=" oo")
    assert bench.detector.stall(job) is None
    assert not bench.reasons(pb2.JOB_RESUMED)


async def test_a_switch_that_nobody_hears_is_lost(bench: Watched) -> None:
    await bench.run()
    bench.unreachable_s = 9.0
    bench.go(3, alive=(0, 1, 2), progress="sss")
    assert not bench.reasons(pb2.SWITCH_LOST)
    bench.unreachable_s = 12.0
    bench.go(1, alive=(0, 1, 2), progress="sss")
    assert bench.reasons(pb2.SWITCH_LOST) == [
        "the switch is lost: the controller has not reached it for 12 s,"
        " rank 0 has had no result for 11 s"
    ]
    assert bench.told()[-1] == ("SWITCH_LOST", [], True)
    await bench.until_empty()


async def test_who_waits_for_a_slow_worker_has_not_lost_the_switch(bench: Watched) -> None:
    await bench.run()
    bench.unreachable_s = 60.0
    bench.go(5, alive=(0, 1, 2), progress="sos")  # rank 1 saves a checkpoint
    bench.go(5, alive=(0, 1, 2), progress="www")  # and has sent since, a moment ago
    assert not bench.reasons(pb2.SWITCH_LOST)
    bench.go(1, alive=(0, 1, 2), progress="wsw")  # all have sent, and it gets no result
    assert len(bench.reasons(pb2.SWITCH_LOST)) == 1


async def test_who_waits_behind_a_link_that_is_down_is_not_left_there(bench: Watched) -> None:
    await bench.run()
    bench.broken = "the link between a and b is down"
    bench.go(10, alive=(0, 1, 2), progress="ooo")  # nobody waits: it moves away from there
    bench.go(5, alive=(0, 1, 2), progress="sos")  # rank 1 has not sent
    assert not bench.reasons(pb2.SWITCH_LOST)
    bench.go(2, alive=(0, 1, 2), progress="sss")
    assert bench.reasons(pb2.SWITCH_LOST) == [
        "the link between a and b is down, and ranks 0-2 waited for 12 s"
    ]
    await bench.until_empty()


async def test_who_waits_while_nothing_is_said_to_be_down_goes_on_waiting(bench: Watched) -> None:
    await bench.run()
    bench.go(30, alive=(0, 1, 2), progress="sss")
    assert not bench.reasons(pb2.SWITCH_LOST)
    assert bench.reasons(pb2.JOB_STALLED)


async def test_what_the_store_refuses_is_left_for_the_supervisor_to_say(bench: Watched) -> None:
    await bench.run()
    bench.go(9)
    bench.store.close()
    bench.now_s += 1.0
    said: list[logging.LogRecord] = []
    handler = Handler(said)
    log = logging.getLogger(failure_detector.__name__)
    log.addHandler(handler)
    try:
        bench.detector.start()
        with pytest.raises(StoreError, match="store :memory:: it is closed"):
            await bench.coordinator.until_broken()
        await asyncio.sleep(0)
    finally:
        log.removeHandler(handler)
        await bench.detector.close()
    assert said == []


async def test_the_timer_checks_by_itself_and_survives_a_bug(bench: Watched) -> None:
    await bench.run()
    checks = 0

    def fail() -> float:
        nonlocal checks
        checks += 1
        raise ZeroDivisionError

    bench.detector._clock = fail
    bench.detector.start()
    while checks < 2:
        await asyncio.sleep(0.01)
    await bench.detector.close()
    await bench.detector.close()
