"""The self-test on real controllers and switches: everything well, and each hop broken in turn."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from ina.cli import main
from ina.controller.embedded import Embedded
from ina.doctor.path import examine_path
from tests.worlds.processes.namespaces import ip
from tests.worlds.processes.two_hosts import CLIENT_DATA, SERVER_DATA, TwoHosts, two_hosts


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoHosts]:
    with two_hosts(tmp_path_factory.mktemp("network")) as hosts:
        yield hosts


def test_every_step_is_ok_and_nothing_is_left() -> None:
    with Embedded(values=64) as embedded:
        steps = {step.name: step for step in examine_path(embedded.controller_addr)}
        assert [step.name for step in steps.values() if not step.ok] == []
        assert "10 of 10" in steps["small packets"].found
        assert "10 of 10" in steps["full packets"].found
        left = embedded.show()
        assert {entry.table for entry in left.entries} == {"own_addresses"}
        assert left.slots_used == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"mode": "shared", "slots": 64, "config": {"switch": {"shared_slots": 16}}},
        {
            "config": {
                "switch": {"mode": "shared", "shared_slots": 16},
                "jobs": {"mode": "shared"},
            }
        },
    ],
    ids=["by an aggregator", "by the switch alone"],
)
def test_a_switch_whose_jobs_share_slots(settings: dict[str, Any]) -> None:
    with Embedded(values=64, **settings) as embedded:
        steps = list(examine_path(embedded.controller_addr))
        assert [step for step in steps if not step.ok] == []
        assert "10 of 10" in {step.name: step for step in steps}["full packets"].found


def test_the_command_tests_a_switch_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["doctor", "--embedded", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {step["name"] for step in said["path"]} >= {"controller", "small packets"}
    assert all(step["ok"] for step in said["path"])


def test_no_controller(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    assert main.run(["doctor", "--controller", address, "--json"]) == 1
    (step,) = json.loads(capsys.readouterr().out)["path"]
    assert not step["ok"]
    assert address in step["found"]
    assert "ina controller run" in step["advice"]


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["--job", "j"], "--controller"),
        (["--embedded", "--controller", "127.0.0.1:1"], "--embedded"),
    ],
)
def test_options_that_do_not_go_together(
    args: list[str], word: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("INA_CONTROLLER", raising=False)
    assert main.run(["doctor", *args]) == 2
    assert word in capsys.readouterr().err


def test_two_hosts_that_reach_each_other(network: TwoHosts) -> None:
    code, steps = network.doctor()
    assert code == 0, steps


def test_a_small_mtu_is_named(network: TwoHosts) -> None:
    ip("-n", network.client, "link", "set", "eth0", "mtu", "600")
    try:
        code, steps = network.doctor()
    finally:
        ip("-n", network.client, "link", "set", "eth0", "mtu", "1500")
    assert code == 1
    assert steps["small packets"]["ok"]
    assert "MTU is 600 bytes" in steps["full packets"]["found"]
    assert "build with 64 values" in steps["full packets"]["advice"]


def test_packets_that_never_arrive_are_lost_on_the_way_there(network: TwoHosts) -> None:
    neighbour = ("neigh", "replace", SERVER_DATA, "dev", "eth0")
    ip("-n", network.client, *neighbour, "lladdr", "02:00:00:00:00:99", "nud", "permanent")
    try:
        code, steps = network.doctor()
    finally:
        ip("-n", network.client, "neigh", "del", SERVER_DATA, "dev", "eth0")
    assert code == 1
    assert "lost on the way there" in steps["small packets"]["found"]


def test_results_that_never_arrive_are_lost_on_the_way_back(network: TwoHosts) -> None:
    neighbour = ("neigh", "replace", CLIENT_DATA, "dev", "eth0")
    ip("-n", network.server, *neighbour, "lladdr", "02:00:00:00:00:99", "nud", "permanent")
    try:
        code, steps = network.doctor()
    finally:
        ip("-n", network.server, "neigh", "del", CLIENT_DATA, "dev", "eth0")
    assert code == 1
    assert "lost on the way back" in steps["small packets"]["found"]
