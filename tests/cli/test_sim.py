"""``ina sim``: what it prints, writes and returns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ina.cli.sim import command
from ina.cli.sim.command import app
from ina.errors import InaError
from ina.sim.causes import scripted_end
from ina.sim.report import Violation
from ina.sim.run import Simulation
from ina.sim.scenario import Fault, FaultSpec, JobSpec, Scenario

SMALL = """
limit_s = 5
[topology]
hosts = 2
[link]
loss = 0.01
[[job]]
name = "train"
workers = 2
steps = 2
tensors = [{ elems = 5000 }]
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_run_prints_jobs_and_ports_and_writes_what_is_asked(small: Path, tmp_path: Path) -> None:
    plot, pcap = tmp_path / "a.png", tmp_path / "a.pcap"
    said = run("run", str(small), "--plot", str(plot), "--pcap", str(pcap), "--events")
    assert said.startswith("small, seed 1: ")
    assert "4 sums checked" in said
    assert "job train is done" in said
    assert "h1>s1" in said
    assert plot.read_bytes()[1:4] == b"PNG"
    assert pcap.stat().st_size > 100_000


def test_a_window_is_taken_by_its_name_with_its_numbers(small: Path) -> None:
    def least(*words: str) -> int:
        report = json.loads(run("run", str(small), "--json", *words))
        limit: int = report["jobs"][0]["in_flight_limit_min"]
        return limit

    assert least("--window", "fixed", "--window-option", "packets=5") == 5
    own = ("--window", "tests.worlds.virtual.windows:Kept")
    assert least(*own, "--window-option", "packets=7", "--window-option", "gap_ns=10") == 7
    assert least(*own) == least("--window", "fixed")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--window-option", "packets=5"), "--window-option packets=5: want --window, too"),
        (("--window", "fixed", "--window-option", "packets"), "want NAME=NUMBER"),
        (("--window", "no_such_module:W"), "there is no module 'no_such_module'"),
        (
            ("--window", "tests.worlds.virtual.windows:Broken"),
            "failed in on_batch: ZeroDivisionError",
        ),
    ],
)
def test_a_window_that_is_none_ends_in_one_line(
    small: Path, words: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(InaError, match=complaint):
        run("run", str(small), *words)


def test_json_has_it_all(small: Path) -> None:
    report = json.loads(run("run", str(small), "--json", "--seed", "3"))
    assert report["seed"] == 3
    assert report["jobs"][0]["steps_done"] == 2
    assert report["violations"] == []


def test_a_broken_promise_is_printed_and_is_the_exit_code(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Simulation.run

    def broken(self: Simulation) -> object:
        self._violate(Violation("wrong sum", "2 is 3"))
        return honest(self)

    monkeypatch.setattr(Simulation, "run", broken)
    result = CliRunner().invoke(app, ["run", str(small)])
    assert result.exit_code == 1
    assert "wrong sum: 2 is 3" in result.output


def test_examples_are_listed_and_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "star" in run("example")
    assert "run it with ina sim run star.toml" in run("example", "star")
    for words, complaint in ((["star"], "is there already"), (["stars"], "no example 'stars'")):
        with pytest.raises(InaError, match=complaint):
            CliRunner().invoke(app, ["example", *words], catch_exceptions=False)


def test_fuzzing_says_what_it_did_and_finds_what_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state.json"
    said = run("fuzz", "--first", "5", "--seeds", "3", "--processes", "1", "--state", str(state))
    assert "\n3 seeds from 5 on: " in f"\n{said}"  # a slow run says before how far it is
    assert "0 violations" in said
    found = json.loads(state.read_text())
    found["findings"] = [{"seed": 7, "kind": "no end", "what": "x", "scenario": {}}]
    state.write_text(json.dumps(found))
    monkeypatch.setattr(command, "smaller", lambda scenario, *_: scenario)
    words = ["fuzz", "--first", "5", "--seeds", "3", "--state", str(state), "--out", str(tmp_path)]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 1
    assert "seed 7: no end: x" in result.output
    assert f"ina sim replay 7 --file {tmp_path}/seed-7.json --ladder" in result.output
    assert (tmp_path / "seed-7.json").exists()


def test_a_seed_is_replayed(tmp_path: Path) -> None:
    said = run("replay", "7", "--ladder")
    assert said.startswith("seed-7, seed 7: ")
    assert "h1              s1" in said


REFUSED = """
limit_s = 3
[topology]
hosts = 2
[[job]]
name = "greedy"
workers = 2
steps = 2
slots = 60000
tensors = [{ elems = 5000 }]
"""
CRASHED = (
    SMALL.replace("steps = 2", "steps = 40\ncompute_ms = 20")
    + """
[[fault]]
what = "crash"
where = "train/1"
at_ms = 300
"""
)


def test_a_job_that_ends_though_nothing_was_done_to_it_is_the_exit_code(tmp_path: Path) -> None:
    path = tmp_path / "refused.toml"
    path.write_text(REFUSED)
    result = CliRunner().invoke(app, ["run", str(path)])
    assert result.exit_code == 1
    (line,) = [it for it in result.output.splitlines() if it.startswith("job greedy ended ")]
    assert " times, though no fault of the scenario was done to it: rank 0: " in line
    assert "60000 slots" in line
    rows = [it for it in result.output.splitlines() if it.startswith("greedy (")]
    assert 1 <= len(rows) < 5  # one for each way in which it ended, of some sixty


def test_a_job_that_a_scenario_kills_is_none(tmp_path: Path) -> None:
    path = tmp_path / "crashed.toml"
    path.write_text(CRASHED.replace("limit_s = 5", "limit_s = 30"))
    said = run("run", str(path))
    assert "job train ended, after crash train/1: rank 0: WorkerLostError" in said


def test_a_fault_that_comes_later_or_to_another_job_explains_no_end() -> None:
    one, other = JobSpec(workers=2, name="one"), JobSpec(workers=2, name="other")

    def scenario(what: Fault, where: str, at_ms: float) -> Scenario:
        return Scenario(fault=[FaultSpec(what=what, where=where, at_ms=at_ms)])

    crash = scenario("crash", "one/0", 500)
    assert scripted_end(crash, one, 1.0) == "crash one/0"
    assert scripted_end(crash, one, 0.4) == ""
    assert scripted_end(crash, other, 1.0) == ""
    assert scripted_end(scenario("power_cycle", "s1", 500), other, 1.0) == "power_cycle s1"
    assert scripted_end(scenario("resize", "one", 500), one, 1.0) == ""
