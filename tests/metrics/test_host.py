"""Metrics of a worker's sessions, and INA_METRICS."""

from __future__ import annotations

import dataclasses
import logging
import weakref
from collections.abc import Iterator

import pytest

from ina.host import metrics
from ina.host.metrics import SessionCollector, address_from
from ina.metrics import MetricsAddressError, MetricsListenError, MetricsServer
from tests.metrics.exported import FakeSession, counted, ticket
from tests.worlds.fakes.scrape import Scraped, scrape

NOT_EXPORTED = {"last_seq", "gso", "gro", "transport", "threads", "queues"}  # no quantities


def served(collector: SessionCollector) -> Scraped:
    with MetricsServer("127.0.0.1:0", [collector]) as server:
        return scrape(server.address)


def test_every_count_of_a_session_is_served() -> None:
    collector, session = SessionCollector(), FakeSession()
    collector.sessions.add(session)
    found = served(collector)
    values = [
        sample.value
        for name, family in found.families.items()
        if name.startswith("ina_worker_")
        for sample in family.samples
    ]
    stats = dataclasses.asdict(counted())
    wanted = [
        float(value) * (1e-9 if name.endswith("_ns") else 1)
        for name, value in stats.items()
        if name not in NOT_EXPORTED
    ]
    assert sorted(values) == pytest.approx(sorted(wanted))


def test_labels_tell_jobs_and_ranks_apart() -> None:
    collector = SessionCollector()
    first, second = FakeSession(ticket("a", 0)), FakeSession(ticket("b", 3))
    collector.sessions.add(first)
    collector.sessions.add(second)
    found = served(collector)
    stats = counted()
    sent = found.value("ina_worker_packets_total", job_name="a", rank="0", direction="sent")
    assert sent == stats.packets_sent
    assert found.value("ina_worker_retransmissions_total", job_name="b", rank="3") == (
        stats.retransmissions
    )


def test_a_session_that_is_closed_or_removed_is_served_no_more() -> None:
    collector = SessionCollector()
    first, second = FakeSession(), FakeSession(ticket("b"))
    collector.sessions.add(first)
    collector.sessions.add(second)
    first.closed = True
    assert len(served(collector).families["ina_worker_timeouts"].samples) == 1
    collector.sessions.remove(second)
    collector.sessions.remove(second)
    assert served(collector).families["ina_worker_timeouts"].samples == []


@pytest.mark.parametrize(
    ("environ", "address"),
    [
        ({}, None),
        ({"INA_METRICS": ""}, None),
        ({"INA_METRICS": "0.0.0.0:9464"}, "0.0.0.0:9464"),
        ({"INA_METRICS": "127.0.0.1:9464", "LOCAL_RANK": "3"}, "127.0.0.1:9467"),
        ({"INA_METRICS": "127.0.0.1:0", "LOCAL_RANK": "3"}, "127.0.0.1:0"),
    ],
)
def test_the_address_of_each_local_rank(environ: dict[str, str], address: str | None) -> None:
    assert address_from(environ) == address


@pytest.mark.parametrize(
    "environ", [{"INA_METRICS": "9464"}, {"INA_METRICS": "h:65535", "LOCAL_RANK": "1"}]
)
def test_a_wrong_address_names_the_variable(environ: dict[str, str]) -> None:
    with pytest.raises(MetricsAddressError, match=f"INA_METRICS={environ['INA_METRICS']}"):
        address_from(environ)


def test_a_session_that_is_forgotten_is_not_kept_alive() -> None:
    collector = SessionCollector()
    session = FakeSession()
    collector.sessions.add(session)
    alive = weakref.ref(session)
    del session
    assert alive() is None
    assert served(collector).families["ina_worker_timeouts"].samples == []


@pytest.fixture
def _stopped() -> Iterator[None]:
    yield
    metrics.stop_from_environ()


@pytest.mark.usefixtures("_stopped")
def test_the_environment_starts_one_endpoint(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        metrics.start_from_environ({"INA_METRICS": "127.0.0.1:0"})
        metrics.start_from_environ({"INA_METRICS": "127.0.0.1:0"})
    (said,) = (record.getMessage() for record in caplog.records)
    address = said.removeprefix("ina: metrics at http://").removesuffix("/metrics")
    assert "ina_worker_packets" in scrape(address).families
    metrics.stop_from_environ()
    with MetricsServer(address, []):  # the port is free again
        pass


@pytest.mark.usefixtures("_stopped")
def test_an_endpoint_whose_port_is_taken_is_an_error() -> None:
    with MetricsServer("127.0.0.1:0", []) as other, pytest.raises(MetricsListenError):
        metrics.start_from_environ({"INA_METRICS": other.address})
