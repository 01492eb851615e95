"""Which way workers take to the switch: shared memory by itself on one host, or what is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from ina.controller.embedded import Embedded
from tests.torch import group_cases
from tests.worlds.processes.launch import finish, launch, outcome, start


@pytest.mark.parametrize(
    ("environ", "transport"),
    [
        ({}, "shm"),
        ({"INA_TRANSPORT": "auto", "INA_LOSS_RATE": "0.05"}, "shm"),
        ({"INA_TRANSPORT": "shm"}, "shm"),
        ({"INA_TRANSPORT": "udp"}, "udp"),
    ],
)
def test_the_embedded_switch(tmp_path: Path, environ: dict[str, str], transport: str) -> None:
    stats = launch(group_cases.its_stats, 3, tmp_path / "w", environ=environ)
    assert [one.session["transport"] for one in stats] == [transport] * 3
    assert [one.network_all_reduces for one in stats] == [1] * 3


def test_the_threads_that_are_asked_for(tmp_path: Path) -> None:
    environ = {"INA_TRANSPORT": "udp", "INA_THREADS": "2"}
    stats = launch(group_cases.its_stats, 2, tmp_path / "w", environ=environ)
    assert [one.session["threads"] for one in stats] == [2, 2]
    assert [one.network_all_reduces for one in stats] == [1] * 2


def test_a_controller_that_offers_no_shared_memory(tmp_path: Path) -> None:
    with Embedded(values=64) as embedded:
        environ = {"INA_CONTROLLER": embedded.controller_addr}
        stats = launch(group_cases.its_stats, 2, tmp_path / "auto", environ=environ)
        assert [one.session["transport"] for one in stats] == ["udp", "udp"]
        folder = tmp_path / "shm"
        workers = start(
            group_cases.sums_once, 2, folder, environ={**environ, "INA_TRANSPORT": "shm"}
        )
        finish(workers, 60.0)
        for rank in range(2):
            ok, text = outcome(folder, rank)
            assert not ok
            assert f"rank {rank}: the switch offers no shared memory" in text


def test_a_controller_that_offers_it(tmp_path: Path) -> None:
    with Embedded(values=64, shm=True) as embedded:
        environ = {"INA_CONTROLLER": embedded.controller_addr}
        stats = launch(group_cases.its_stats, 2, tmp_path / "w", environ=environ)
        assert [one.session["transport"] for one in stats] == ["shm", "shm"]
