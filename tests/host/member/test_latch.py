"""Which reason a session ends with, where there are several, and when."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from ina.errors import InaError
from ina.host.errors import (
    CorruptedSumError,
    RanksDifferError,
    SwitchLostError,
    WorkerLostError,
)
from ina.host.member.latch import _ANSWER_S
from ina.rpc import controller_pb2 as pb2
from tests.worlds.virtual.member import in_virtual_time, now_s, started

LOST, GONE = WorkerLostError("rank 1 has left"), SwitchLostError("gone")
CORRUPTION = SimpleNamespace(
    operation=1, seq=0, results=1, all_results=1, same=True, own_is_missing=True, first_value=-1
)


def test_the_first_reason_stays() -> None:
    async def work() -> None:
        member = started()
        await member.latch.fail(LOST)
        await member.latch.fail(GONE)
        assert str(await member.latch.error()) == str(LOST)
        assert await member.latch.error() is not LOST  # a traceback belongs to one thread
        assert len(member.engine.failed_s) == 1

    in_virtual_time(work)


@pytest.mark.parametrize("says_after_s", [0.5, _ANSWER_S + 1.0])
def test_what_differs_is_the_controllers_to_say_for_five_seconds(says_after_s: float) -> None:
    async def work() -> None:
        member = started()
        await asyncio.sleep(1.0)
        beats = member.wire.count("Heartbeat")
        member.engine.found_mismatch = SimpleNamespace(operation=2, seq=7)
        asking = asyncio.ensure_future(member.latch.error())
        await asyncio.sleep(says_after_s)
        member.tell(kind=pb2.RANKS_DIFFER, reason="sum here, avg there", fatal=True)
        error = await asking
        assert isinstance(error, RanksDifferError)
        assert member.wire.count("Heartbeat") > beats  # it was told at once
        has_heard = says_after_s < _ANSWER_S
        assert ("sum here, avg there" in str(error)) == has_heard
        assert now_s() <= 1.0 + _ANSWER_S + 1.1

    in_virtual_time(work)


@pytest.mark.parametrize("takes_over", [True, False])
def test_who_may_take_over_is_asked_once_and_nothing_fails_if_he_does(takes_over: bool) -> None:
    asked: list[InaError] = []

    def hook(error: InaError) -> bool:
        asked.append(error)
        return takes_over

    async def work() -> None:
        member = started(on_failure=hook)
        await member.latch.fail(LOST)
        await member.latch.fail(GONE)
        assert asked == [LOST]
        assert member.latch.settled() is LOST
        assert bool(member.engine.failed_s) is not takes_over
        assert (await member.latch.error() is None) is takes_over

    in_virtual_time(work)


def test_once_it_is_frozen_the_jobs_end_does_not_matter() -> None:
    async def work() -> None:
        member = started()
        await member.latch.freeze()
        await member.latch.fail(LOST)
        assert member.latch.settled() is None
        member.engine.may_freeze = False
        failed = started()
        await failed.latch.fail(LOST)
        with pytest.raises(WorkerLostError):
            await failed.latch.freeze()

    in_virtual_time(work)


def test_a_halt_for_sums_that_are_none_is_told_without_asking_anybody() -> None:
    async def work() -> None:
        member = started()
        member.engine.found_corruption = CORRUPTION
        member.engine.found_mismatch = SimpleNamespace(operation=2, seq=7)
        await member.latch.on_halt()
        assert isinstance(member.latch.settled(), CorruptedSumError)
        assert now_s() == 0.0

    in_virtual_time(work)
