"""INA_METRICS with real sessions: what was reduced is served while they are open."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np
import pytest

from ina.controller.embedded import Embedded
from ina.host import Session, metrics, serve_metrics
from ina.metrics import MetricsAddressError
from tests.worlds.fakes.scrape import scrape


@pytest.fixture(scope="module")
def controller() -> Iterator[str]:
    with Embedded(values=64) as embedded:
        yield embedded.controller_addr


def test_a_session_is_served_from_its_join_to_its_close(
    controller: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("INA_METRICS", "127.0.0.1:0")
    monkeypatch.setenv("LOCAL_RANK", "5")
    try:
        with Session.join(controller, "counted", 0, 1) as session:
            (said,) = (r.getMessage() for r in caplog.records if "metrics at" in r.getMessage())
            address = said.removeprefix("ina: metrics at http://").removesuffix("/metrics")
            session.all_reduce(np.ones(1001, np.float32))
            session.all_reduce(np.ones(7, np.int32))
            found = scrape(address)
            of = {"job_name": "counted", "rank": "0"}
            assert found.value("ina_worker_reduced_bytes_total", **of) == 4 * 1008
            assert found.value("ina_worker_operations_total", **of) == 2
            assert found.value("ina_worker_packets_total", **of, direction="sent") >= 17
        assert scrape(address).families["ina_worker_operations"].samples == []
    finally:
        metrics.stop_from_environ()


def test_a_wrong_address_stops_the_join_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INA_METRICS", "everywhere")
    with pytest.raises(MetricsAddressError, match="INA_METRICS=everywhere: want host:port"):
        Session.join("127.0.0.1:1", "never", 0, 1)


def test_without_the_environment_a_program_serves_by_itself(controller: str) -> None:
    with serve_metrics("127.0.0.1:0") as server, Session.join(controller, "own", 0, 1) as session:
        session.all_reduce(np.ones(7, np.int32))
        assert scrape(server.address).value("ina_worker_window_packets", job_name="own") > 0


def test_importing_the_host_library_logs_and_serves_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        metrics.start_from_environ({})
    assert caplog.records == []
