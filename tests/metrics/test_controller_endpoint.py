"""A controller's endpoint: a real job, its switch's counters, and both roles."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ina.host import Session
from tests.worlds.fakes.scrape import Scraped, scrape
from tests.worlds.processes.controller_command import config_file, ina, started

TIMEOUT_S = 60


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = config_file(tmp_path)
    file.write_text('metrics = "127.0.0.1:0"\n' + file.read_text())
    return file


@pytest.fixture
def running(config: Path) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """A controller with its own switch, its address, and its endpoint."""
    with started("controller", "run", str(config), "--embedded-switch") as (process, ready):
        yield process, ready["controller"], ready["metrics"]


def of_job(found: Scraped, name: str) -> float:
    return found.value(name, job_name="train")


def test_a_job_is_counted_while_it_runs(running: tuple[subprocess.Popen[str], str, str]) -> None:
    _, controller, metrics = running
    empty = scrape(metrics)
    assert empty.value("ina_controller_slots_used") == 0
    assert empty.families["ina_job_slots"].samples == []
    with Session.join(controller, "train", 0, 1) as session:
        for _ in range(3):
            session.all_reduce(np.ones(64, np.int32))
        found = scrape(metrics)
        assert found.value("ina_controller_primary") == 1
        assert found.value("ina_controller_switch_connected") == 1
        assert found.value("ina_controller_jobs", state="running") == 1
        assert found.value("ina_controller_slots_used") == of_job(found, "ina_job_slots") > 0
        assert of_job(found, "ina_job_results_total") == 3
        assert of_job(found, "ina_job_contributions_total") == 3
        assert of_job(found, "ina_job_results_bytes_total") > 3 * 4 * 64
        assert found.value("ina_member_lease_seconds", job_name="train", rank="0") > 0
        assert found.value("ina_controller_events_total", kind="job_running") == 1
        assert found.value("ina_controller_scrape_errors_total", source="switch") == 0
    assert scrape(metrics).families["ina_job_slots"].samples == []


def test_a_standby_is_scraped_too(config: Path, tmp_path: Path) -> None:
    text = config.read_text() + f'[store]\npath = "{tmp_path}/c.db"\n'
    primary, standby = tmp_path / "primary.toml", tmp_path / "standby.toml"
    primary.write_text(text.replace("[switch]", "[switch]\nelection_id = 2"))
    standby.write_text(text)
    with started("switch", "--port", "1=udp:", "--grpc-addr", "127.0.0.1:0") as (_, switch):
        run = ("--switch", switch["grpc_addr"])
        with (
            started("controller", "run", str(primary), *run) as (_, first),
            started("controller", "run", str(standby), *run) as (_, second),
        ):
            assert scrape(first["metrics"]).value("ina_controller_primary") == 1
            found = scrape(second["metrics"])
    assert found.value("ina_controller_primary") == 0
    assert found.value("ina_controller_switch_connected") == 1
    assert found.families["ina_job_slots"].samples == []


def test_a_switch_that_is_gone_is_seen(config: Path) -> None:
    with started("switch", "--port", "1=udp:", "--grpc-addr", "127.0.0.1:0") as (switch, ready):
        command = ("controller", "run", str(config), "--switch", ready["grpc_addr"])
        with started(*command) as (_, controller):
            metrics = controller["metrics"]
            assert scrape(metrics).value("ina_controller_switch_connected") == 1
            switch.kill()
            switch.wait(TIMEOUT_S)
            while scrape(metrics).value("ina_controller_switch_connected"):
                pass  # until the controller knows; the test's own deadline bounds this
            found = scrape(metrics)
            assert found.value("ina_controller_primary") == 1
            assert found.value("ina_controller_scrape_errors_total", source="switch") >= 1
            assert found.value("ina_controller_events_total", kind="switch_unreachable") == 1


def test_a_wrong_or_taken_address_is_one_line(config: Path) -> None:
    good = config.read_text()
    config.write_text(good.replace("127.0.0.1:0", "nowhere", 1))
    refused = ina("controller", "check", str(config))
    said = f"error: {config}: metrics: 'nowhere' is not host:port\n"
    assert (refused.returncode, refused.stderr) == (2, said)
    config.write_text(good)
    with started("controller", "run", str(config), "--embedded-switch") as (_, ready):
        taken = ready["metrics"]
        refused = ina("controller", "run", "--listen", "127.0.0.1:0", "--metrics", taken)
    said = f"error: metrics: cannot listen on {taken}: Address already in use\n"
    assert (refused.returncode, refused.stderr) == (2, said)
