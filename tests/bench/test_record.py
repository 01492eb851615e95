"""The tables of the documentation are made of whole runs that are checked in."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks import comparisons, measured, pages, record, tables
from ina.bench import report
from ina.bench.report import Report
from ina.errors import InvalidInputError


def run(monkeypatch: pytest.MonkeyPatch, module: Any, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["program", *arguments])
    code: int = module.main()
    return code


def test_the_pages_have_the_tables_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, pages, "--check") == 0


def test_another_table_is_noticed_and_mended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    there = {name: (pages.ROOT / "docs" / name).read_text("utf-8") for name in pages.short()}
    (tmp_path / "docs").mkdir()
    for name, text in there.items():
        (tmp_path / "docs" / name).write_text(text.replace(" × Gloo |", " x Gloo |"), "utf-8")
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    assert run(monkeypatch, pages, "--check") == 1
    assert capsys.readouterr().err.startswith("docs/benchmarks.md: not of benchmarks/results")
    assert run(monkeypatch, pages) == 0
    assert {name: (tmp_path / "docs" / name).read_text("utf-8") for name in there} == there


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"docs/a\.md: no <!-- results: begin -->"):
        tables.with_table("a.md", "text", "table")


def test_each_measurement_of_ina_has_a_line() -> None:
    reports = measured.reports()
    text = tables.markdown(measured.TITLES, measured.lines(reports))
    for name in ("star", "host"):
        rows = [row for row in reports[name].rows if row["backend"] == "ina"]
        assert rows
        for row in rows:
            assert f"| {row['time_s'] * 1e3:.3g} ms |" in text
    assert text.count("× Gloo") >= 6
    assert len({line.count("|") for line in text.splitlines()}) == 1
    assert measured.LINES.keys() == record.BENCHES.keys()


def test_wrong_sums_are_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    load = report.load

    def spoilt(path: Path) -> Report:
        return msgspec.structs.replace(load(path), wrong=3 if path.stem == "host" else 0)

    monkeypatch.setattr(report, "load", spoilt)
    with pytest.raises(InvalidInputError, match="host: 3 wrong values"):
        measured.reports()


def test_a_benchmark_that_fails_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken: dict[str, Any] = {"star": ("allreduce", "--sizes=0")}
    monkeypatch.setattr(record, "BENCHES", broken)
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    assert run(monkeypatch, record) == 2
    assert "error: star: " in capsys.readouterr().err


def test_all_rows_that_were_saved_are_on_the_site() -> None:
    for sections in (comparisons.windows_sections(), comparisons.routing_sections()):
        found = list(sections)
        assert len(found) > 4
        for it in found:
            assert it.rows
            assert {len(row) for row in it.rows} == {len(it.titles)}
    saved = {path.stem for path in (measured.RESULTS / "windows").glob("*.csv")}
    assert saved == {it.name for it in comparisons.windows_sections()}
    saved = {path.stem for path in (measured.RESULTS / "routing").glob("*.csv")}
    assert saved == {it.name for it in comparisons.routing_sections()}
    found_tables = {path.name for path in measured.RESULTS.glob("*.csv")}
    assert found_tables == pages.TABLES.keys()
