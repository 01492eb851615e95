"""The JSON form, saved reports, baselines, plots, and what ranks are asked; no measurement."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from ina.bench import allreduce, baseline, ddp, report
from ina.bench.plot import Point
from ina.bench.report import Ratio, Report, rows_of
from ina.bench.spread import spread
from ina.bench.testbed import asked_of, records
from ina.cli.bench import allreduce as bench_allreduce
from ina.cli.bench import ddp as bench_ddp
from ina.cli.bench import output as bench_output
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.output import Outputs, SavedOptions
from ina.cli.bench.testbeds import Loopback
from ina.cli.common.columns import Column
from ina.cli.common.output import FittingTable, check_picture
from ina.errors import InaError, InvalidInputError

VIEW = FittingTable(["n"], [[2]], ())


def a_report(*ratios: tuple[str, float], wrong: int = 0) -> Report:
    return Report(
        bench="allreduce",
        settings={"link": "1gbit"},
        rows=[{"workers": 2}],
        ratios=[Ratio(*pair) for pair in ratios],
        wrong=wrong,
    )


def finish(found: Report, **files: Any) -> None:
    Outputs("allreduce", json=True, **files).finish(found, VIEW, title="t")


def test_the_json_form_is_stable(capsys: pytest.CaptureFixture[str]) -> None:
    finish(a_report(("x", 2.0)))
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {
        *("bench", "settings", "rows", "ratios", "wrong", "notes", "schema", "ina", "machine"),
    }
    assert document["schema"] == "ina-bench/1"
    assert document["ratios"] == [{"name": "x", "value": 2.0}]
    assert set(document["machine"]) == {"cpu", "cores", "kernel", "load", "date"}


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    found = a_report(("x", 2.0))
    report.save(found, tmp_path / "r.json")
    assert report.load(tmp_path / "r.json") == found


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"bench": 1}'])
def test_a_file_that_is_no_report_is_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(InvalidInputError, match=r"r\.json"):
        report.load(path)
    with pytest.raises(InvalidInputError, match=r"absent\.json"):
        report.load(tmp_path / "absent.json")


def test_another_form_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    report.save(a_report(), path)
    path.write_text(path.read_text().replace("ina-bench/1", "ina-bench/9"))
    with pytest.raises(InvalidInputError, match="ina-bench/9"):
        report.load(path)


def test_a_baseline_flags_what_became_worse() -> None:
    before = a_report(("a", 2.0), ("b", 2.0), ("gone", 1.0), ("zero", 0.0))
    now = a_report(("a", 1.5), ("b", 1.7), ("new", 1.0), ("zero", 1.0))
    first, second = baseline.compare(before, now, 0.2)
    assert (first.name, first.change, first.regressed) == ("a", 0.75, True)
    assert (second.name, second.change, second.regressed) == ("b", 0.85, False)


def test_reports_that_cannot_be_compared() -> None:
    other = Report(bench="ddp", settings={}, rows=[], ratios=[], wrong=0)
    with pytest.raises(InvalidInputError, match="bench ddp"):
        baseline.compare(other, a_report(("a", 1.0)), 0.2)
    with pytest.raises(InvalidInputError, match="no ratio"):
        baseline.compare(a_report(("a", 1.0)), a_report(("b", 1.0)), 0.2)
    with pytest.raises(InvalidInputError, match="tolerance"):
        baseline.compare(a_report(("a", 1.0)), a_report(("a", 1.0)), 1.0)


def test_a_regression_and_a_wrong_sum_exit_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.json"
    report.save(a_report(("a", 2.0)), path)
    finish(a_report(("a", 1.9)), baseline=path)
    for spoilt in (a_report(("a", 1.0)), a_report(("a", 2.0), wrong=1)):
        with pytest.raises(typer.Exit) as ended:
            finish(spoilt, baseline=path)
        assert ended.value.exit_code == 1
    (change,) = json.loads(capsys.readouterr().out.splitlines()[1])["baseline"]
    assert (change["before"], change["now"], change["regressed"]) == (2.0, 1.0, True)


def rows() -> list[dict[str, Any]]:
    case = allreduce.AllReduceCase("float32", 4, "sum", 256, 3, 1.0)
    made = [
        allreduce.make_measurement(
            workers=workers,
            backend=backend,
            count=size // 4,
            times=spread([size * factor * 1e-9]),
            wrong=0,
            limit_s=size * 1e-9,
            gloo_s=size * 2e-9,
            cpu_s=None,
            transport="udp",
            case=case,
        )
        for workers in (2, 4)
        for size in (1 << 16, 1 << 20)
        for backend, factor in (("ina", 1), ("gloo", 2))
    ]
    assert made[0].gain == pytest.approx(2.0)
    assert made[0].busbw_gb_s == pytest.approx(1.0)  # 2 workers: as algbw
    assert made[4].busbw_gb_s == pytest.approx(1.5)
    assert [ratio.name for ratio in allreduce.ratios(made, "1gbit")][:2] == [
        *("1gbit udp n=2 64K ina/gloo", "1gbit udp n=2 64K ina/limit"),
    ]
    return rows_of(made)


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_plots_are_written(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    from ina.bench.figure import draw

    path = tmp_path / f"out{suffix}"
    check_picture("--plot", path)
    draw(allreduce.panels(rows()), "title", path)
    head = path.read_bytes()[:8]
    assert head == b"\x89PNG\r\n\x1a\n" if suffix == ".png" else head.startswith(b"<?xml")


@pytest.mark.parametrize(("multicast", "crossings"), [(False, 8), (True, 5)])
def test_a_limit_counts_what_the_switch_sends_once_once(multicast: bool, crossings: int) -> None:
    """4 workers' tensors go up; results come down to each, or once for all."""
    case = allreduce.AllReduceCase("float32", 4, "sum", 256, 3, 1.0)
    item = {"name": "ina", "transport": "udp", "host_node": None, "wire": "32"}
    found = allreduce._limit_s(Loopback(4), item, 1024, 1e9, multicast, case)
    assert found == pytest.approx(crossings * (4096 + 4 * 32) / 1e9)


def test_the_panels_of_a_plot() -> None:
    time, rate, gain = allreduce.panels(rows())
    assert [curve.label for curve in time.curves] == [
        *("ina, 2 workers", "gloo, 2 workers", "ina, 4 workers", "gloo, 4 workers"),
        *("limit, 2 workers", "limit, 4 workers"),
    ]
    assert _rounded(time.curves[1].points) == [(1 << 16, 0.0001311), (1 << 20, 0.0020972)]
    assert _rounded(rate.curves[0].points) == [(1 << 16, 1.0), (1 << 20, 1.0)]
    assert [(curve.label, _rounded(curve.points)) for curve in gain.curves] == [
        *(("64 KiB", [(2, 2.0), (4, 2.0)]), ("1 MiB", [(2, 2.0), (4, 2.0)])),
    ]


def test_the_table_tells_losses_and_fits_a_terminal() -> None:
    case = allreduce.AllReduceCase("float32", 4, "sum", 256, 3, 1.0)
    resends = {"retransmissions": 9, "losses": 4, "spurious_resends": 3, "probes": 2}
    row = allreduce.make_measurement(
        workers=2, backend="ina", count=1 << 24, times=spread([0.1]), wrong=0, limit_s=None,
        gloo_s=0.2, cpu_s=None, transport="udp", case=case, resends=resends, multicast=True,
    )  # fmt: skip
    assert (row.losses, row.spurious_resends, row.probes) == (4, 3, 2)
    view = bench_allreduce.BENCH.view(Found(title="t", settings={}, rows=rows_of([row])))
    (cells,), titles = view.rows, view.columns
    shown = dict(zip(titles, cells, strict=True))
    assert (shown["lost"], shown["limit ms"]) == (4, "-")
    lines = _printed(view, width=80)
    assert lines[1].split("  ")[0] == "n"
    for name in ("backend", "size", "time ms", "#wrong", "Gloo/this"):
        assert name in lines[1]
    assert "67108864" in lines[3]
    assert lines[4].startswith("(too narrow for: redop, type, count")
    none = ["-" if name == "lost" else cell for name, cell in shown.items()]
    wide = _printed(replace(view, rows=[cells, none]), width=240)
    assert all(name in wide[1] for name in titles)
    end = wide[1].index("lost") + len("lost")
    assert [line[end - 4 : end] for line in wide[3:5]] == ["   4", "   -"]  # as numbers stand


def test_ddp_fits_a_terminal() -> None:
    row = ddp.StepRow(
        *("resnet50", 8, "gloo", 25_600_000, 102_400_000, 25, 1.5, 1.4, 1.6, 5, 0.1, 12345.0),
        *("images", 0.1, None, None, 2.0, 0),
    )
    view = bench_ddp.BENCH.view(Found(title="t", settings={}, rows=rows_of([row])))
    lines = _printed(view, width=80)
    assert "resnet50" in lines[3]
    assert all(name in lines[1] for name in ("backend", "step ms", "items/s", "#wrong"))


def _printed(view: FittingTable, width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as said, pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench_output, "emit", lambda obj, json, human: console.print(human))
        Outputs("allreduce", json=False).finish(a_report(), view, title="t")
    return said.get().splitlines()


def _rounded(points: Sequence[Point]) -> list[tuple[float, float]]:
    return [(point.x, round(point.y, 7)) for point in points]


def test_a_baseline_of_another_benchmark_is_told_first(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    report.save(a_report(("a", 2.0)), path)
    Outputs("allreduce", json=True, baseline=path)
    with pytest.raises(InvalidInputError, match="of bench allreduce, this is pipeline"):
        Outputs("pipeline", json=True, baseline=path)


@pytest.mark.parametrize("broken", ["save", "plot", "baseline"])
def test_what_was_measured_is_told_whatever_a_file_lacks(
    broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    before = tmp_path / "before.json"
    report.save(a_report(("other", 1.0) if broken == "baseline" else ("a", 1.0)), before)
    files = {"save": tmp_path / "now.json", "plot": tmp_path / "now.png", "baseline": before}
    outputs = Outputs("allreduce", True, files["save"], files["baseline"], plot=files["plot"])
    if broken != "baseline":
        files[broken].mkdir()
    panels = allreduce.panels(rows())
    with pytest.raises(InvalidInputError, match=r"no ratio" if broken == "baseline" else r"now\."):
        outputs.finish(a_report(("a", 2.0)), VIEW, title="t", panels=panels)
    document = json.loads(capsys.readouterr().out)
    assert document["ratios"] == [{"name": "a", "value": 2.0}]
    for name in {"save", "plot"} - {broken}:
        assert files[name].is_file()


def test_a_plot_nobody_can_write_is_told_first(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"\.png"):
        Outputs("allreduce", json=False, plot=tmp_path / "x.gif")
    with pytest.raises(InvalidInputError, match="no folder"):
        Outputs("allreduce", json=False, plot=tmp_path / "absent" / "x.png")


@dataclass(frozen=True, kw_only=True)
class _Options(SavedOptions):
    steps: int = 3


_DECLARED = Bench(
    "toy",
    _Options,
    (
        *(Column("n"), Column("ms", "time_s", 1, 1e3), Column("±", ("low_s", "high_s"), 1, 1e3)),
        *(Column("all", lambda row: row["n"] * row["steps"]), Column("limit", "limit", 2)),
    ),
    notes=("always",),
)


def _toy(asked: _Options) -> Found:
    """Of a toy."""
    lacking: dict[str, Any] = {"low_s": None, "high_s": None, "limit": None, "wrong": 0}
    row = {"n": 2, "time_s": 0.01234, "low_s": 0.012, "high_s": 0.0133, "limit": 0.5, "wrong": 0}
    rows = [row, {"n": 4, "time_s": 0.5, **lacking}]
    settings = {"steps": asked.steps, "n": "of all"}
    notes, fails = ["this time"], asked.steps > 3
    return Found(title="t", settings=settings, rows=rows, notes=notes, fails=fails)


def test_a_declared_benchmark_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    toy = _DECLARED.command(_toy)
    assert (toy.__name__, toy.__doc__) == ("_toy", "Of a toy.")
    toy(json=True)
    document = json.loads(capsys.readouterr().out)
    assert (document["bench"], document["wrong"]) == ("toy", 0)
    assert document["notes"] == ["always", "this time"]
    assert document["settings"] == {"steps": 3, "n": "of all"}
    toy()
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert printed[1] == ["n", "ms", "±", "all", "limit"]
    assert printed[3:5] == [["2", "12.3", "1.3", "6", "0.5"], ["4", "500", "-", "12", "-"]]
    with pytest.raises(typer.Exit) as ended:
        toy(steps=4)
    assert ended.value.exit_code == 1


@dataclass(frozen=True)
class _Order:
    elems: int
    pause_s: float
    ways: Sequence[str] = ()


@dataclass(frozen=True)
class _Said(Loopback):
    """Rank 0 says this, whatever it is asked."""

    lines: tuple[str, ...] = ()

    def run(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        environ: Mapping[str, str],
        timeout_s: float,
        on_line: Callable[[str], None],
    ) -> None:
        assert (module, dict(environ), timeout_s) == ("worker", {"A": "1"}, 5.0)
        sys.argv = [module, *arguments]
        for line in self.lines:
            on_line(line)


def test_ranks_get_an_order_and_answer_in_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [])
    said = _Said(2, lines=("a warning", '{"n": 1}', "{", '{"n": 2}'))
    seen: list[dict[str, Any]] = []

    def ask(of: _Said, count: int) -> list[dict[str, Any]]:
        order = _Order(elems=3, pause_s=0.0, ways=("shared", "static"))
        environ = {"A": "1"}
        return records(
            *(of, "worker", order),
            count=count, timeout_s=5.0, environ=environ, on_record=seen.append,
        )  # fmt: skip

    assert ask(said, 2) == seen == [{"n": 1}, {"n": 2}]
    assert asked_of(_Order) == _Order(elems=3, pause_s=0.0, ways=["shared", "static"])
    with pytest.raises(InaError, match="worker: 0 results of 1"):
        ask(replace(said, lines=("Traceback",)), 1)
