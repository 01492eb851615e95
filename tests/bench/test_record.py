"""The table of docs/benchmarks.md is made of the reports that are checked in, and of whole runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks import record
from ina.bench import report
from ina.bench.report import Report
from ina.errors import InvalidInputError


def committed() -> dict[str, Report]:
    return {name: report.load(record.RESULTS / f"{name}.json") for name in record.BENCHES}


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["record", *arguments])
    return record.main()


def test_the_page_has_the_table_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "--check") == 0


def test_another_table_is_noticed_and_mended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "benchmarks.md"
    text = record.PAGE.read_text("utf-8")
    page.write_text(text.replace(" × Gloo |", " x Gloo |", 1), "utf-8")
    monkeypatch.setattr(record, "PAGE", page)
    assert run(monkeypatch, "--check") == 1
    assert run(monkeypatch, "--table") == 0
    assert page.read_text("utf-8") == text


def test_each_measurement_of_ina_has_a_line() -> None:
    reports = committed()
    text = record.table(reports)
    for name in ("star", "host"):
        measured = [row for row in reports[name].rows if row["backend"] == "ina"]
        assert measured
        for row in measured:
            assert f"| {row['time_s'] * 1e3:.3g} ms |" in text
    assert text.count("× Gloo") >= 6
    assert len({line.count("|") for line in text.splitlines() if line.startswith("|")}) == 1


def test_wrong_sums_are_no_result() -> None:
    reports = committed()
    reports["host"] = msgspec.structs.replace(reports["host"], wrong=3)
    with pytest.raises(InvalidInputError, match="host: 3 wrong values"):
        record.table(reports)


def test_a_benchmark_that_fails_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken: dict[str, Any] = {"star": ("allreduce", "--sizes=0")}
    monkeypatch.setattr(record, "BENCHES", broken)
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    assert run(monkeypatch) == 2
    assert "error: star: " in capsys.readouterr().err
