"""What a worker makes of a controller, or a switch, that does not answer: to the second."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from ina.host.errors import JobEndedError, SwitchLostError, WorkerLostError
from ina.host.member.client import CallError
from ina.rpc import controller_pb2 as pb2
from tests.worlds.virtual.member import (
    AWAY,
    HEARTBEAT_S,
    LEASE_S,
    Member,
    in_virtual_time,
    now_s,
    started,
)


def test_a_controller_that_is_away_is_no_reason_to_end() -> None:
    async def work() -> None:
        member = started()
        await asyncio.sleep(5.0)
        member.wire.error, member.wire.stream_begins = AWAY, False
        member.wire.streams[-1].cancel()
        await asyncio.sleep(100 * LEASE_S)
        assert member.latch.settled() is None
        beats = member.wire.count("Heartbeat")
        assert beats >= 100 * LEASE_S / HEARTBEAT_S
        member.wire.error = None
        await asyncio.sleep(HEARTBEAT_S)
        assert member.wire.count("Heartbeat") > beats

    in_virtual_time(work)


@pytest.mark.parametrize(("refuses", "within_s"), [(False, LEASE_S), (True, 5.0)])
def test_a_controller_that_dies_with_its_rank_names_it(refuses: bool, within_s: float) -> None:
    async def work() -> None:
        member = started(controller_with_rank=1)
        assert member.wire.pinged_s == LEASE_S
        await asyncio.sleep(5.0)
        died_s = now_s()
        member.wire.error, member.wire.refuses, member.wire.stream_begins = AWAY, refuses, False
        member.wire.streams[-1].cancel()
        assert await member.until_settled() - died_s <= within_s
        error = member.latch.settled()
        assert isinstance(error, WorkerLostError)
        assert error.ranks == (1,)
        says = "rank 1 has died: nothing listens" if refuses else "rank 1 is dead, stopped or not"
        assert says in str(error)
        await member.core.leave(lambda: None)
        assert member.wire.count("Leave") == 0  # nobody is there to be left

    in_virtual_time(work)


def test_a_stream_that_is_open_proves_that_the_rank_with_the_controller_lives() -> None:
    async def work() -> None:
        member = started(controller_with_rank=1)
        await asyncio.sleep(5.0)
        member.wire.error = CallError(grpc.StatusCode.DEADLINE_EXCEEDED, "late")
        await asyncio.sleep(10 * LEASE_S)
        assert member.latch.settled() is None

    in_virtual_time(work)


def test_the_rank_with_the_controller_does_not_take_itself_for_dead() -> None:
    async def work() -> None:
        member = started(controller_with_rank=0)
        await asyncio.sleep(5.0)
        member.wire.error, member.wire.refuses, member.wire.stream_begins = AWAY, True, False
        member.wire.streams[-1].cancel()
        await asyncio.sleep(10 * LEASE_S)
        assert member.latch.settled() is None

    in_virtual_time(work)


class Refused(Member):
    """Each heartbeat finds that packets were refused since the last."""

    def __init__(self, node: Any = None) -> None:
        super().__init__(node=node)
        stats = self.engine.stats

        def counted() -> Any:
            self.engine.refused += 1
            return stats()

        self.engine.stats = counted  # type: ignore[method-assign]
        self.engine.in_flight = 1


@pytest.mark.parametrize("leases", [1, 2])
def test_a_switch_that_refuses_is_lost_after_a_lease_a_node_after_two(leases: int) -> None:
    async def work() -> None:
        node = SimpleNamespace(rank=2) if leases == 2 else None
        member = Refused(node)
        member.core.start()
        took_s = await member.until_settled()
        assert leases * LEASE_S <= took_s <= leases * LEASE_S + 2 * HEARTBEAT_S
        error = member.latch.settled()
        assert type(error) is (WorkerLostError if node else SwitchLostError)
        assert "127.0.0.1:17760" in str(error) or "rank 2 is gone" in str(error)

    in_virtual_time(work)


def test_connections_that_gave_up_end_the_session_at_once() -> None:
    async def work() -> None:
        member = started()
        await asyncio.sleep(5.0)
        member.latch.hint("stall", "rank 1 has not sent sequence number 0")
        member.engine.spent = 1
        assert await member.until_settled() <= 5.0 + 2 * HEARTBEAT_S
        error = member.latch.settled()
        assert type(error) is SwitchLostError
        assert "a reliable connection to the next worker" in str(error)
        assert str(error).endswith("rank 1 has not sent sequence number 0")

    in_virtual_time(work)


@pytest.mark.parametrize("tells", [False, True])
def test_of_a_job_that_is_not_known_the_streams_reason_wins(tells: bool) -> None:
    async def work() -> None:
        member = started()
        await asyncio.sleep(5.0)
        member.wire.error = CallError(grpc.StatusCode.NOT_FOUND, "no such job")
        member.core.speak()
        await asyncio.sleep(0.5)
        assert member.latch.settled() is None
        if tells:
            member.tell(kind=pb2.SWITCH_LOST, reason="registers lost", fatal=True)
        assert 5.5 <= await member.until_settled() <= 6.1
        expected = SwitchLostError if tells else JobEndedError
        assert type(member.latch.settled()) is expected

    in_virtual_time(work)
