"""Metrics of a controller: what its snapshot says, and a switch that is slow or away."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable

import pytest

from ina.controller.jobs.events import EventBus
from ina.controller.service import metrics
from ina.controller.service.metrics import JOB_COUNTERS, ControllerCollector
from ina.metrics import MetricsServer
from ina.p4 import names
from ina.rpc import controller_pb2 as pb2
from ina.tables.errors import SwitchError
from tests.metrics.exported import SNAPSHOT, counters
from tests.worlds.fakes.scrape import Scraped, scrape


async def away() -> Iterable[pb2.Counter]:
    raise SwitchError("switch 10.0.0.9:9559: no answer")


async def closed() -> Iterable[pb2.Counter]:
    """The call of a connection that is closed meanwhile."""
    raise asyncio.CancelledError


async def never() -> Iterable[pb2.Counter]:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


async def scraped(collector: ControllerCollector) -> Scraped:
    """Scrapes from another thread while the loop runs."""
    with MetricsServer("127.0.0.1:0", [collector]) as server:
        found = await asyncio.to_thread(scrape, server.address)
    await collector.close()
    return found


def test_every_job_counter_of_the_program_has_a_metric() -> None:
    counters = names.job_counters(names.SHARED)
    assert set(JOB_COUNTERS) == {name.rpartition(".")[2] for name in counters}


def test_jobs_members_slots_and_counters() -> None:
    async def run() -> Scraped:
        return await scraped(ControllerCollector(lambda: SNAPSHOT, counters))

    found = asyncio.run(run())
    assert found.value("ina_controller_primary") == 1
    assert found.value("ina_controller_switch_connected") == 1
    assert found.value("ina_controller_slots_used") == 512
    assert found.value("ina_controller_jobs", state="running") == 1
    assert found.value("ina_controller_jobs", state="joining") == 0
    assert found.value("ina_controller_foreign_entries") == 6
    assert found.value("ina_tenant_slots", tenant="vision") == 512
    assert found.value("ina_tenant_slots_limit", tenant="vision") == 1024
    assert found.value("ina_tenant_jobs", tenant="other") == 0
    limits = found.families["ina_tenant_slots_limit"].samples
    assert [sample.labels["tenant"] for sample in limits] == ["vision"]  # the other has none
    assert found.value("ina_controller_info", switch="10.0.0.9:9559") == 1
    assert found.value("ina_job_stalled", job_name="train", tenant="vision") == 1
    assert found.value("ina_job_missing_workers", job_name="train") == 1
    assert found.value("ina_job_joined_workers", job_name="train") == 2
    assert found.value("ina_member_lease_seconds", job_name="train", rank="1") == 7.5
    counted = {"retransmissions": 8, "losses": 1, "spurious_resends": 2, "probes": 5}
    for name, count in {**counted, "packets_sent": 40}.items():
        assert found.value(f"ina_member_{name}_total", job_name="train", rank="1") == count
    for i, alias in enumerate(JOB_COUNTERS):
        assert found.value(f"ina_{alias}_total", job_name="train") == 100 + i
        assert found.value(f"ina_{alias}_bytes_total", job_name="train") == 1000 + i
    assert found.value("ina_dataplane_dropped_packets_total", reason="unknown_member") == 5
    assert found.value("ina_controller_scrape_errors_total", source="switch") == 0


@pytest.mark.parametrize(
    ("read", "why"), [(away, "no answer"), (closed, "cancelled"), (never, "no answer in time")]
)
def test_a_switch_that_does_not_answer_costs_only_its_counters(
    read: object, why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(metrics, "SWITCH_DEADLINE_S", 0.1)
    caplog.set_level(logging.DEBUG, metrics.__name__)

    async def run() -> Scraped:
        collector = ControllerCollector(lambda: SNAPSHOT, read)  # type: ignore[arg-type]
        return await scraped(collector)

    found = asyncio.run(run())
    assert found.value("ina_controller_slots_used") == 512
    assert found.families["ina_job_results"].samples == []
    assert found.value("ina_controller_scrape_errors_total", source="switch") == 1
    assert [r.getMessage().endswith(why) for r in caplog.records] == [True]


def test_a_loop_that_hangs_does_not_hang_the_scrape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "SCRAPE_DEADLINE_S", 0.1)

    async def run() -> Scraped:
        collector = ControllerCollector(lambda: SNAPSHOT, counters)
        found: list[Scraped] = []
        with MetricsServer("127.0.0.1:0", [collector]) as server:
            thread = threading.Thread(target=lambda: found.append(scrape(server.address)))
            thread.start()
            thread.join()  # and so holds the loop
        await collector.close()
        return found[0]

    found = asyncio.run(run())
    assert found.value("ina_controller_scrape_errors_total", source="controller") == 1
    assert "ina_controller_slots" not in found.families


def test_events_are_counted_by_kind() -> None:
    async def run() -> Scraped:
        collector = ControllerCollector(lambda: SNAPSHOT, counters)
        former, bus = EventBus(), EventBus()
        collector.count_events(former)
        former.publish(pb2.JobEvent(kind=pb2.MEMBER_LOST))
        former.close()
        collector.count_events(bus)
        for kind in (pb2.MEMBER_LOST, pb2.MEMBER_LOST, pb2.SWITCH_LOST):
            bus.publish(pb2.JobEvent(kind=kind, name="train"))
        return await scraped(collector)

    found = asyncio.run(run())
    assert found.value("ina_controller_events_total", kind="member_lost") == 3
    assert found.value("ina_controller_events_total", kind="switch_lost") == 1
    assert found.value("ina_controller_events_total", kind="job_evicted") == 0


def test_closing_it_leaves_no_task() -> None:
    async def run() -> int:
        collector = ControllerCollector(lambda: SNAPSHOT, counters)
        collector.count_events(EventBus())
        await asyncio.sleep(0)  # it begins to listen
        await collector.close()
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1  # its own
