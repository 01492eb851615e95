"""Switches and links of an emulated network that fail, and are mended: what goes on meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ina.emulate import namespaces, remains
from ina.emulate.load import load_topology
from ina.emulate.programming import plan_switches
from ina.emulate.topology import Topology, outages_of
from ina.errors import InvalidInputError
from ina.fabric.outages import Down
from ina.netns import within
from tests.emulate.two_jobs import EXAMPLE, ONE, SUM, TRAIN, TWO, ended, train
from tests.selection import EMULATED
from tests.worlds.processes.emulations import call, forwarding_of, left, need, new_name, up
from tests.worlds.processes.forks import Running
from tests.worlds.processes.stand_ins import python

REACH = """
import socket, sys
with socket.create_connection((sys.argv[1], 22), timeout=10) as peer:
    peer.sendall(b"here")
    assert peer.recv(4) == b"here"
"""
ECHO = """
import socket
with socket.create_server(("0.0.0.0", 22)) as server:
    print("ready", flush=True)
    while True:
        peer, _ = server.accept()
        with peer:
            peer.sendall(peer.recv(4))
"""


def test_what_can_fail() -> None:
    assert outages_of(load_topology(EXAMPLE)).parts == [
        *("leaf1", "leaf2", "leaf3", "spine1", "spine2"),
        *("leaf1-spine1", "leaf2-spine1", "leaf3-spine1"),
        *("leaf1-spine2", "leaf2-spine2", "leaf3-spine2"),
    ]


def _without(topology: Topology, part: str) -> Down:
    outages = outages_of(topology)
    assert [outage.name for outage in outages.only([part])] == [part]
    return outages.down


@pytest.mark.parametrize("down", ["spine1", "leaf1-spine1"])
def test_the_others_forward_around_what_is_down(down: str) -> None:
    topology = load_topology(EXAMPLE)
    tables = {
        plan.name: forwarding_of(plan)
        for plan in plan_switches(topology, 64, down=_without(topology, down))
    }
    for start, end in (("leaf1", "h4"), ("leaf2", "h1"), ("leaf1", "leaf3"), ("leaf3", "leaf1")):
        host = end.startswith("h")
        mac = topology.host(end).mac if host else topology.switch_mac(end)
        way = [start]
        while way[-1] != end:
            _, beyond = topology.ports(way[-1])[tables[way[-1]][mac]]
            way.append(beyond.node)
        assert "spine2" in way
        assert "spine1" not in way
    if down == "spine1":
        assert topology.switch_mac("spine1") not in tables["leaf1"]


def test_of_who_is_cut_off_there_is_no_entry() -> None:
    topology = load_topology(EXAMPLE)
    plans = plan_switches(topology, 64, down=_without(topology, "leaf1"))
    gone = {topology.host(name).mac for name in ("h1", "h2", "h3")}
    for plan in plans:
        assert gone.isdisjoint(forwarding_of(plan))


def test_what_is_no_part_of_it_cannot_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remains, "RUN_DIR", tmp_path)
    state = remains.State("n", 1, "", [], {}, "", "", ["s1", "s2", "s1-s2"])
    with pytest.raises(InvalidInputError, match="emulation n has no s3: have s1, s2, s1-s2"):
        remains.put_down(state, ["s1", "s3"], is_down=True)
    assert remains.asked_down("n") == frozenset()


@pytest.mark.parametrize("kind", EMULATED)
def test_hosts_reach_each_other_around_what_has_failed(kind: str, tmp_path: Path) -> None:
    """Over TCP, and sums of a job: before, without a spine, without a link, and mended."""
    need(kind)
    name = new_name()
    script = tmp_path / "sum.py"
    script.write_text(SUM)
    with up(EXAMPLE, name, tmp_path / name, "--switch", kind) as network:
        space = namespaces.namespace(name, "h9")
        with subprocess.Popen(
            within(space, [sys.executable, "-c", ECHO]), stdout=subprocess.PIPE
        ) as echo:
            assert echo.stdout is not None
            assert echo.stdout.readline() == b"ready\n"
            for command, part in (
                (None, ""),
                ("fail", "spine1"),
                ("mend", "spine1"),
                ("fail", "leaf1-spine1"),
                ("mend", "leaf1-spine1"),
            ):
                if command is not None:
                    done = call(command, part, "--name", name, "--json")
                    assert done.returncode == 0, done.stderr
                    assert json.loads(done.stdout)["down"] == ([part] if command == "fail" else [])
                done = call(
                    "exec", "h1", "--name", name, "--", sys.executable, "-c", REACH, "10.0.0.9"
                )
                assert done.returncode == 0, (command, part, done.stderr)
            echo.kill()
        done = call("run", "--name", name, "--", python(), script)
        assert done.returncode == 0, done.stderr
        assert network.poll() is None
        wrong = call("fail", "spine3", "--name", name)
        assert wrong.returncode == 2
        assert "has no spine3" in wrong.stderr


def _step(job: Running, number: int) -> None:
    """Returns when rank 0 has said that it has done this step."""
    for line in job.stdout:
        if line.startswith(f"step {number}"):
            return
    raise AssertionError(f"it ended before step {number}")


@pytest.mark.long
@pytest.mark.parametrize("part", ["spine1", "leaf1-spine1"])
def test_two_jobs_of_ddp_go_on_when_something_fails(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over Gloo for a moment, then by other trees; each step's integers are summed exactly."""
    need("soft")
    monkeypatch.setenv("INA_ON_SWITCH_LOSS", "fallback")
    file = tmp_path / "net.toml"
    file.write_text(f"{EXAMPLE.read_text()}\n[controller.switch]\nloss_s = 1.0\n")
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    found: dict[str, list[dict[str, Any]]] = {}
    for case in ("undisturbed", part):
        name = new_name()
        with up(file, name, tmp_path / name):
            jobs = [train(name, hosts, script, 300, 256) for hosts in (ONE, TWO)]
            if case == part:
                for job in jobs:
                    _step(job, 100)
                began_s = time.monotonic()
                done = call("fail", part, "--name", name)
                assert done.returncode == 0
                print(f"{part} has failed, {time.monotonic() - began_s:.1f} s")
            found[case] = [ended(job) for job in jobs]
            for hosts, said in zip((ONE, TWO), found[case], strict=True):
                of_all = [_said(tmp_path / name / f"job.{host}.log") for host in hosts.split(",")]
                assert {it["parameters"] for it in of_all} == {said["parameters"]}
        assert left(name) == {}
    for before, after in zip(found["undisturbed"], found[part], strict=True):
        assert before["fallbacks"] == 0
        assert after["fallbacks"] > 0
        assert after["returns"] == 1
        print(f"{after['total_s'] / before['total_s']:.2f} times {before['total_s']:.1f} s")


def _said(log: Path) -> dict[str, Any]:
    lines = log.read_text().splitlines()
    said: dict[str, Any] = json.loads(next(it for it in lines if it.startswith('{"rank"')))
    return said
