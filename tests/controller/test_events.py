"""The event bus: who hears what, what is remembered, and what happens to a slow listener."""

from __future__ import annotations

import asyncio

import pytest

from ina.controller.errors import SlowWatcherError
from ina.controller.jobs.events import (
    HISTORY_EVENTS,
    HISTORY_NAMES,
    EventBus,
    Subscription,
    job_event,
)
from ina.rpc import controller_pb2 as pb2
from ina.trees.slots import SlotRange
from tests.worlds.fakes.switches import job_at


def event(name: str, reason: str = "") -> pb2.JobEvent:
    return pb2.JobEvent(kind=pb2.JOB_RUNNING, name=name, reason=reason)


async def rest(subscription: Subscription) -> list[str]:
    return [f"{heard.name}{heard.reason}" async for heard in subscription]


async def test_each_hears_its_job_and_what_is_for_all() -> None:
    bus = EventBus(unix_clock=lambda: 12.5)
    of_a, of_all = bus.subscribe("a"), bus.subscribe()
    for name in ("a", "b", "", "a"):
        bus.publish(event(name))
    bus.close()
    assert await rest(of_a) == ["a", "", "a"]
    assert await rest(of_all) == ["a", "b", "", "a"]
    assert [heard.unix_s for heard in bus.history("a")] == [12.5, 12.5]


async def test_a_listener_waits_for_what_comes_later() -> None:
    bus = EventBus()
    heard = asyncio.create_task(rest(bus.subscribe("a")))
    await asyncio.sleep(0)
    bus.publish(event("a", "1"))
    await asyncio.sleep(0)
    bus.publish(event("a", "2"))
    bus.close()
    assert await heard == ["a1", "a2"]
    assert await rest(bus.subscribe("a")) == []  # closed for good


async def test_a_slow_listener_gets_what_there_was_room_for_and_an_error() -> None:
    bus = EventBus()
    slow, quick = bus.subscribe("a", limit=2), bus.subscribe("a")
    for reason in "123":
        bus.publish(event("a", reason))
    assert [(await anext(slow)).reason, (await anext(slow)).reason] == ["1", "2"]
    with pytest.raises(SlowWatcherError, match="watcher of job 'a': more than 2 events behind"):
        await anext(slow)
    bus.close()
    assert await rest(quick) == ["a1", "a2", "a3"]


async def test_who_left_is_told_to_a_job_at_once_however_many() -> None:
    bus = EventBus()
    with bus.subscribe("a") as job, bus.subscribe() as everything:
        for rank in range(3):
            bus.publish(left("a", rank))
            bus.publish(left("b", rank))
        bus.publish(left("a", 3, epoch=8))
        assert [(e.epoch, list(e.ranks)) for e in [await anext(job), await anext(job)]] == [
            (7, [0, 1, 2]),
            (8, [3]),
        ]
        assert [list((await anext(everything)).ranks) for _ in range(3)] == [[0], [0], [1]]
    assert [list(e.ranks) for e in bus.history("b")] == [[0], [1], [2]]


def left(name: str, rank: int, epoch: int = 7) -> pb2.JobEvent:
    return pb2.JobEvent(kind=pb2.MEMBER_LEFT, name=name, epoch=epoch, ranks=[rank])


async def test_who_has_left_is_told_no_more() -> None:
    bus = EventBus()
    with bus.subscribe() as left:
        bus.publish(event("a"))
    bus.publish(event("b"))
    assert await rest(left) == ["a"]


def test_history_is_bounded_by_events_and_by_names() -> None:
    bus = EventBus()
    for number in range(HISTORY_EVENTS + 3):
        bus.publish(event("a", str(number)))
    assert bus.history("a")[0].reason == "3"
    assert len(bus.history("a")) == HISTORY_EVENTS
    for number in range(HISTORY_NAMES):
        bus.publish(event(f"job {number}"))
    assert bus.history("a") == []
    assert len(bus.history("job 0")) == 1


def test_an_event_names_its_job() -> None:
    job = job_at("j", 7, 3, SlotRange(0, 2, 2), 0.0, epoch=9)
    made = job_event(pb2.MEMBER_LOST, job, ranks=[2, 1], reason="gone", fatal=True)
    assert (made.name, made.job, made.epoch, made.fatal) == ("j", 7, 9, True)
    assert list(made.ranks) == [1, 2]
