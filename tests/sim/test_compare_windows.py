"""``ina sim compare windows``: small comparisons from the command to the page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ina.cli import main
from ina.cli.sim import windows_view
from ina.cli.sim.compare import app
from ina.cli.sim.saved_rows import read_windows
from ina.congestion import ALGORITHMS, Congestion
from ina.sim.errors import ScenarioError
from ina.sim.reading import check
from ina.sim.windows import runner
from ina.sim.windows.alone import Alone
from ina.sim.windows.cell import Cell, Family, Measured, Promise, Series
from ina.sim.windows.families import FAMILIES
from ina.sim.windows.incast import Incast
from ina.sim.windows.jobs import Jobs
from ina.sim.windows.late import Late
from ina.sim.windows.network import Limit, Net
from ina.sim.windows.panama_clos import PanamaClos
from ina.sim.windows.runner import compare
from ina.sim.windows.slots import Slots
from ina.sim.windows.tcp import Tcp
from ina.sim.windows.timing import timing
from ina.sim.windows.web_search import WebSearch

NET = Net(0.2, 20, 256, 64)
DEFAULT = Congestion.algorithm


@dataclass(frozen=True, kw_only=True)
class Made(Cell):
    """Nothing is simulated: its metric is 10 and a tenth of the seed, and 20 with ``fixed``."""

    @property
    def limit(self) -> Limit:
        return Limit(50.0, "link")

    def run(self, congestion: Mapping[str, object], seed: int) -> Measured:
        if seed == 13:
            raise ScenarioError("nobody is there")
        rate = 20.0 if congestion["algorithm"] == "fixed" else 10 + seed / 10
        series = Series(
            at_ms=[0, 1],
            windows={"a": [1, 2]},
            queues_kib={"p": [0, 1]},
            goodput_gbit={"a": [3, 4]},
        )
        return Measured({"rate": rate, "none": 0.0}, series, completions_us=[1.0, 5.0])


def family(*promises: Promise, cells: tuple[Cell, ...] = ()) -> Family:
    usual = Made(name="one", net=NET, is_quick=True, plot="made")
    return Family("made", "a thing", cells or (usual,), promises, ("rate", "missing"))


def invoke(of: Family, monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str]:
    monkeypatch.setattr(runner, "FAMILIES", {of.name: of})
    words = ("windows", "--processes", "1", *words)
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    return result.exit_code, result.output


def test_a_job_alone_fills_its_link_and_the_table_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the real network, core and program."""
    cell = Alone(name="small", net=NET, workers=2)
    alone = replace(FAMILIES["alone"], cells=(cell,))
    algorithms = f"{DEFAULT},fixed"
    code, said = invoke(alone, monkeypatch, "--algorithms", algorithms, "--seeds", "2", "--json")
    assert code == 0
    found = json.loads(said)
    assert [it["algorithm"] for it in found] == [DEFAULT, "fixed"]
    for it in found:
        share = it["metrics"]["share of limit"]
        assert share["mean"] == pytest.approx(1.0, abs=0.05)
        assert share["seeds"] == 2
        assert it["metrics"]["loss"]["mean"] == 0
        assert it["limit_by"] == "link"
        assert len(it["verdicts"]) == 3
    # W is 64 packets of 350 bytes, and less than one is in flight on the empty link.
    fixed = found[1]["metrics"]
    assert fixed["window"]["mean"] == 64
    assert fixed["queue/threshold"]["mean"] == pytest.approx(62 / 8, abs=0.5)
    assert found[1]["verdicts"][2]["holds"] is False


def test_promises_that_hold_and_that_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Promise("rate", 10.2, is_least=True)
    broken = Promise("rate", 0.5, is_least=False, relative_to="fixed")
    algorithms = ("--algorithms", f"{DEFAULT},fixed")
    code, said = invoke(family(kept), monkeypatch, "--strict", *algorithms)
    assert code == 0
    assert f"promises of {DEFAULT}: 1 of 1 hold" in said
    assert "10.2 ±0.25" in said
    code, said = invoke(family(kept, broken), monkeypatch, "--strict", *algorithms)
    assert code == 1
    assert "broken: made: one: rate at most 0.5 times fixed's: it is 0.51" in said
    assert invoke(family(kept, broken), monkeypatch, *algorithms)[0] == 0


def test_what_was_not_run_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    promise = Promise("rate", 0.5, is_least=False, relative_to="fixed")
    code, said = invoke(family(promise), monkeypatch, "--strict", "--algorithms", DEFAULT)
    assert code == 0
    assert "promises" in said
    assert "0 of 0 hold" in said
    assert "not judged, for want of runs: fixed's" in said
    # What others break is theirs.
    never = Promise("rate", 15, is_least=False)
    code, said = invoke(family(never), monkeypatch, "--strict", "--algorithms", f"{DEFAULT},fixed")
    assert code == 0
    assert "1 of 1 hold" in said


def test_a_run_that_fails_is_told_and_keeps_no_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--algorithms", DEFAULT, "--first", "13", "--seeds", "1", "--strict")
    code, said = invoke(family(Promise("rate", 1, is_least=True)), monkeypatch, *words)
    assert code == 1
    assert f"failed: made: one: {DEFAULT}: seed 13: ScenarioError: nobody is there" in said


def test_cells_are_chosen_by_name_and_by_being_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = tuple(Made(name=name, net=NET, is_quick=name == "b") for name in ("a", "b", "ab"))
    names = []
    for words in ((), ("--quick",), ("--cell", "a")):
        chosen = ("--algorithms", "fixed", "--json", "--seeds", "1", *words)
        code, said = invoke(family(cells=cells), monkeypatch, *chosen)
        assert code == 0
        names.append([it["cell"] for it in json.loads(said)])
    assert names == [["a", "b", "ab"], ["b"], ["a", "ab"]]
    with pytest.raises(ScenarioError, match="nothing to compare"):
        compare([family(cells=cells)], {"fixed": {"algorithm": "fixed"}}, [1], cell="c")


def test_rows_are_saved_and_plots_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved, drawn = tmp_path / "rows", tmp_path / "plots"
    words = ("--algorithms", DEFAULT, "--save", str(saved), "--plots", str(drawn))
    of = family(Promise("rate", 1, is_least=True))
    assert invoke(of, monkeypatch, *words)[0] == 0
    (row,) = read_windows(saved, of)
    assert (row.cell, row.algorithm, row.limit_gbit, row.limit_by) == ("one", DEFAULT, 50, "link")
    assert windows_view.cells(of, row)[3:] == ["10.2 ±0.25", "-", "1/1"]
    picture = (drawn / "made.svg").read_bytes()
    assert picture.startswith(b"<?xml")
    assert (drawn / "made-completions.svg").exists()
    # Once more, and it is the same, byte for byte.
    before = (saved / "made.csv").read_text()
    assert invoke(of, monkeypatch, *words)[0] == 0
    assert (saved / "made.csv").read_text() == before
    assert (drawn / "made.svg").read_bytes() == picture


def test_rows_that_were_not_run_again_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of = family(Promise("rate", 0.5, is_least=False, relative_to="fixed"))
    for names in ("fixed", DEFAULT):
        words = ("--algorithms", names, "--seeds", "1", "--save", str(tmp_path))
        assert invoke(of, monkeypatch, *words)[0] == 0
    fixed, default = read_windows(tmp_path, of)
    assert (fixed.algorithm, default.algorithm) == ("fixed", DEFAULT)
    # Beside a row of another run, this one is judged.
    assert default.verdicts[0].value == pytest.approx(10.1 / 20)
    assert windows_view.cells(of, default)[3] == "10.1"  # one seed
    again = ("--algorithms", DEFAULT, "--first", "13", "--seeds", "1", "--save", str(tmp_path))
    assert invoke(of, monkeypatch, *again)[0] == 0
    assert "nobody is there" in read_windows(tmp_path, of)[1].errors[0]


def test_what_cannot_be_is_refused_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    for words, line in (
        (["--scenarios", "alone,none"], "scenario 'none': there are alone, jobs, tcp"),
        (["--algorithms", "best"], f"algorithm 'best': there are {', '.join(ALGORITHMS)}"),
        (["--option", "shrink=0.5"], "--option: want one algorithm, with --algorithms"),
        (["--algorithms", "fixed", "--option", "packets=x"], "--option packets=x: want NAME="),
        (["--algorithms", "fixed", "--option", "more=1"], "has no option 'more'"),
        (["--save", "/dev/null/rows"], "--save /dev/null/rows: Not a directory"),
    ):
        assert main.run(["sim", "compare", "windows", *words]) == 2
        assert line in capsys.readouterr().err


@pytest.mark.parametrize("name", FAMILIES)
def test_all_cells_are_scenarios_that_can_be(name: str) -> None:
    """Their names are theirs, and promises are of metrics in the table. Of a family that promises
    something, one is quick at least."""
    of = FAMILIES[name]
    assert len({cell.name for cell in of.cells}) == len(of.cells)
    assert any(cell.is_quick for cell in of.cells) or not of.promises
    assert {promise.metric for promise in of.promises} <= {*of.columns}
    table = {"algorithm": "fixed"}
    for cell in of.cells:
        assert 0 < cell.limit.goodput_gbit < cell.net.rate_gbit
        if isinstance(cell, Alone):
            check(cell.scenario(table, 0.01))
        elif isinstance(cell, Jobs | Tcp):
            check(cell.scenario(table, 1))
        elif isinstance(cell, WebSearch | Incast | PanamaClos):
            check(cell.scenario(table))
        elif isinstance(cell, Slots):
            check(cell.scenario(table, ["healthy", "late"]))
        else:
            assert isinstance(cell, Late)
            check(cell.scenario(table, 0.01, []))


def test_runs_are_as_long_as_packets_allow() -> None:
    slow, fast = Net(1, 100, 64, 256), Net(100, 1000, 64, 256)
    time = timing(slow, hops=4)
    assert time.warm_s == pytest.approx(100 * slow.base_s)
    assert time.total_s == pytest.approx(300 * slow.base_s)
    short = timing(fast, hops=64)
    assert short.total_s == pytest.approx(90 * fast.base_s)
    assert short.warm_s == pytest.approx(30 * fast.base_s)
    least = timing(Net(1, 5, 64, 256), hops=4)
    assert least.warm_s == pytest.approx(5e-3)
    assert least.total_s == pytest.approx(15e-3)
    assert least.every_s == pytest.approx(max(least.total_s / 3000, Net(1, 5, 64, 256).base_s / 4))


def test_two_jobs_with_one_window_share_a_link_and_one_that_leaves_leaves_all_of_it() -> None:
    """Its buffer holds both windows, so that neither loses any."""
    cell = Jobs(name="two", net=Net(0.5, 50, 1024, 64, cables=2), count=2)
    found = cell.run({"algorithm": "fixed"}, 1).metrics
    assert found["Jain"] > 0.99
    assert found["round trips"] <= 50
    assert found["Jain after"] == pytest.approx(1)
    assert found["share of limit"] == pytest.approx(1, abs=0.03)
    assert found["share after"] == pytest.approx(1, abs=0.03)
    assert found["loss"] == 0


def test_a_straggler_holds_the_slots_that_it_does_not_use() -> None:
    """With windows of one size: its sums wait for its slow link."""
    net = Net(2, 20, 256, 64, cables=2)
    cell = Slots(name="few", net=net, shared=16, slow_gbit=0.1)
    found = cell.run({"algorithm": "fixed"}, 1).metrics
    assert 0 < found["healthy slots"] < found["late slots"] <= 1
    assert found["healthy slots"] + found["late slots"] <= 1
    assert found["late, Gbit/s"] < 0.1 < found["Gbit/s"] < found["alone, Gbit/s"]
    assert found["share of alone"] == pytest.approx(found["Gbit/s"] / found["alone, Gbit/s"])


@pytest.mark.parametrize(
    "name", ["32 workers, 1 Gbit/s, 1000 us, 64 KiB", "32 workers, 10 Gbit/s, 5 us, 64 KiB"]
)
def test_marks_on_the_ways_of_many_workers_do_not_hold_up_each(name: str) -> None:
    """All results tell of a mark on any worker's way; who has no part in it keeps its window."""
    cell = next(cell for cell in FAMILIES["alone"].cells if cell.name == name)
    measured = cell.run({"algorithm": "ina"}, 1)
    assert measured.metrics["share of limit"] > 0.95


def test_flows_that_heed_marks_are_not_taken_for_ones_that_do_not() -> None:
    """Sixteen flows of DCTCP mark most results; the seed is one with which they mark most."""
    cell = next(cell for cell in FAMILIES["tcp"].cells if cell.name.startswith("16 DCTCP"))
    assert cell.run({"algorithm": "ina"}, 2).metrics["training/fair"] < 1.5
