"""However an emulation ends, nothing of it is left. Real namespaces: needs root."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ina.cli.main import run
from ina.emulate import job
from ina.emulate.namespaces import processes
from ina.netns import ip, within
from tests.selection import SWITCHES
from tests.worlds.processes.emulations import (
    ALL_REDUCE,
    call,
    left,
    need,
    new_name,
    star,
    start,
    up,
)
from tests.worlds.processes.stand_ins import PROCESSES, python


@pytest.fixture
def name() -> str:
    need("soft")
    return new_name()


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """An emulation of two hosts that jobs use one after the other; its name and folder."""
    need("soft")
    name, folder = new_name(), tmp_path_factory.mktemp("used")
    with up(star(folder, 2), name, folder / name) as process:
        yield name, folder
        assert process.poll() is None
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM
        assert left(name) == {}


def test_without_root_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for words in ([str(star(tmp_path, 2)), "--out", str(tmp_path / "out")], ["clean"]):
        assert run(["emulate", *words]) == 2
        assert capsys.readouterr().err.startswith("error: emulation needs root")
    assert run(["emulate", "check", str(star(tmp_path, 2))]) == 0


@pytest.mark.parametrize("kind", [*SWITCHES, "xdp"])
def test_hosts_sum_exactly_and_nothing_is_left(kind: str, tmp_path: Path) -> None:
    need(kind)
    name = new_name()
    worker = tmp_path / "worker.py"
    worker.write_text(ALL_REDUCE)
    out = tmp_path / name
    done = call(
        *("run", star(tmp_path, 3), "--switch", kind, "--name", name, "--out", out, "--json"),
        *("--", sys.executable, worker),
        by=sys.executable,  # else forks have it all
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["switches"] == {"s1": kind}
    assert [rank["host"] for rank in said["ranks"]] == ["h1", "h2", "h3"]
    assert "rank 0: equal" in done.stderr  # what rank 0 printed
    assert [(out / f"job.h{n}.log").read_text() for n in (2, 3)] == [
        "rank 1: equal\n",
        "rank 2: equal\n",
    ]
    assert left(name) == {}


# Of the others SIGINT comes while it comes up, and SIGTERM after it was used: see there.
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGHUP,
        pytest.param(signal.SIGINT, marks=pytest.mark.long),
        pytest.param(signal.SIGTERM, marks=pytest.mark.long),
    ],
)
def test_a_signal_takes_it_down(number: signal.Signals, name: str, tmp_path: Path) -> None:
    """And what somebody else has started in a namespace."""
    with up(star(tmp_path, 2), name, tmp_path / name) as process:
        found = left(name)
        assert len(found["namespaces"]) == 3
        guest = subprocess.Popen(within(f"ina.{name}.h1", ["sleep", "1000"]))
        ip(f"ina.{name}.h1", "addr")
        while guest.pid not in processes([f"ina.{name}.h1"]):
            assert guest.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait(60) == 128 + number
        assert guest.wait(30) == -signal.SIGTERM
        assert left(name) == {}


@pytest.mark.parametrize(
    ("step", "number"),
    [
        ("namespaces and links", signal.SIGINT),
        ("namespaces and links", signal.SIGKILL),
        ("setting the switches", signal.SIGINT),
        ("setting the switches", signal.SIGKILL),
        ("starting the controller", signal.SIGINT),
    ],
)
def test_a_signal_while_it_comes_up(
    step: str, number: signal.Signals, name: str, tmp_path: Path
) -> None:
    process = start(star(tmp_path, 2), "--name", name, "--out", tmp_path / name)
    while step not in (line := process.stderr.readline()):
        assert line, "it ended too early"
    process.send_signal(number)
    process.stderr.read()
    assert process.wait(60) == (130 if number == signal.SIGINT else -signal.SIGKILL)
    if number == signal.SIGKILL:
        assert call("clean", name).returncode == 0
    assert left(name) == {}


def test_clean_removes_what_a_killed_one_left(name: str, tmp_path: Path) -> None:
    with up(star(tmp_path, 2), name, tmp_path / name) as process:
        refused = call("clean", name, "--json")
        assert json.loads(refused.stdout) == [{"name": name, "running": process.pid}]
        process.kill()
        process.wait(30)
        spaces = left(name)["namespaces"]
        count = 2 * PROCESSES  # the switch and the controller run on
        assert len(processes(spaces)) == count
        done = call("clean", name, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == [{"name": name, "namespaces": 3, "processes": count}]
        assert left(name) == {}
        assert call("clean", name).stdout == "nothing is left\n"


def test_an_error_in_the_middle_leaves_nothing(name: str, tmp_path: Path) -> None:
    """Of itself, nor of a killed one of its name, which it has removed first."""
    file = star(tmp_path, 2)
    with up(file, name, tmp_path / name) as process:
        process.kill()
        process.wait(30)
        file.write_text(
            f'{file.read_text()}[hosts.h1x]\nip = "10.0.0.9/24"\ncommands = ["false"]\n'
            '[[links]]\nends = ["h1x", "s1"]\n'
        )
        done = call(file, "--name", name, "--out", tmp_path / name)
        assert done.returncode == 2
        assert "removing what a killed emulation" in done.stderr
        assert "error: host h1x: false: exit code 1" in done.stderr
        assert left(name) == {}


def test_one_name_runs_once_and_others_can_use_it(used: tuple[str, Path]) -> None:
    name, folder = used
    again = call(folder / "star.toml", "--name", name, "--out", folder / "again")
    assert again.returncode == 2
    assert again.stderr.startswith(f"error: emulation {name} is running (pid ")
    worker = folder / "worker.py"
    worker.write_text(ALL_REDUCE)
    ran = call("run", "--name", name, "--hosts", "h2,h1", "--", python(), worker)
    assert ran.returncode == 0, ran.stderr
    assert (folder / name / "job.h2.log").read_text() == "rank 0: equal\n"
    jobs = call("exec", "net", "--name", name, "--", "ina", "job", "list", "--json")
    assert json.loads(jobs.stdout) == [], jobs.stderr  # it reached the controller
    asked = call("exec", "h2", "--name", name, "--", "sh", "-c", "echo $INA_HOST")
    assert asked.stdout == "10.0.0.2\n"
    found = call("exec", "h2", "--name", name, "--", "getent", "hosts", "h1", "controller")
    assert [line.split() for line in found.stdout.splitlines()] == [
        ["10.0.0.1", "h1"],
        ["172.31.255.254", "controller"],
    ]
    for words, says in (
        (("run", "--name", name, "--hosts", "h9", "--", "true"), "no host h9"),
        (("run", "--name", name), "no command"),
        (("exec", "h9", "--name", name, "--", "true"), "no host h9"),
    ):
        refused = call(*words)
        assert refused.returncode == 2
        assert says in refused.stderr


def test_a_failing_rank_is_named_and_the_others_end(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(job, "OTHERS_GRACE_S", 0.1)
    monkeypatch.setattr(sys, "executable", python())
    script = 'if [ $RANK = 1 ]; then echo "no disk" >&2; exit 7; fi; sleep 1000'
    started = time.monotonic()
    options = ["--name", name, "--out", str(tmp_path / name)]
    code = run(["emulate", "run", str(star(tmp_path, 2)), *options, "--", "sh", "-c", script])
    assert code == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: rank 1 on h2: exit code 7: no disk (see ")
    assert time.monotonic() - started < 240  # not the job's deadline
    assert left(name) == {}


def test_a_job_has_a_deadline(used: tuple[str, Path]) -> None:
    name, folder = used
    done = call("run", "--name", name, "--timeout-s", "0.2", "--", "sh", "-c", "sleep 1000")
    assert done.returncode == 2
    logs = [folder / name / f"job.h{rank + 1}.log" for rank in range(2)]
    late = f"rank 0 on h1 (see {logs[0]}), rank 1 on h2 (see {logs[1]})"
    assert f"error: not done after 0.2 s: {late}" in done.stderr
    assert processes([f"ina.{name}.h1", f"ina.{name}.h2"]) == set()


def test_a_switch_that_dies_ends_it(name: str, tmp_path: Path) -> None:
    with up(star(tmp_path, 2), name, tmp_path / name) as process:
        pids = processes([f"ina.{name}.net"])
        switch = next(
            pid for pid in pids if b"afpacket" in Path(f"/proc/{pid}/cmdline").read_bytes()
        )
        os.kill(switch, signal.SIGKILL)
        assert process.wait(60) == 2
        _, said = process.communicate(timeout=10)
        assert "error: switch s1 ended with SIGKILL" in said
        assert left(name) == {}


def test_a_job_takes_along_what_its_ranks_started(used: tuple[str, Path]) -> None:
    name, _ = used
    before = processes([f"ina.{name}.h1", f"ina.{name}.h2"])
    for fails in ("true", "false"):
        script = f"setsid sleep 1000 & setsid sleep 1000 & {fails}"
        done = call("run", "--name", name, "--", "sh", "-c", script)
        assert done.returncode == (0 if fails == "true" else 2), done.stderr
        assert processes([f"ina.{name}.h1", f"ina.{name}.h2"]) == before == set()
