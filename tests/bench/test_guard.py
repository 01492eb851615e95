"""The regression guard's decisions, with made-up measurements."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import default_window, guard
from ina.bench.report import Ratio


@pytest.fixture(autouse=True)
def _without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_window, "broken", lambda measure: [])


def test_the_committed_baseline_names_what_is_measured() -> None:
    names = [ratio.name for ratio in guard.read_baseline(guard.BASELINE)]
    benches = {bench[0] for bench in guard.BENCHES}
    assert {name.partition(":")[0] for name in names} == benches
    assert any("ina/gloo" in name for name in names)
    assert any("pipeline/numpy" in name for name in names)
    assert any("/memcpy" in name for name in names)


def test_only_ratios_that_count_are_kept() -> None:
    names = ["scan float32 DRAM /memcpy", "quantize float32 DRAM /memcpy", "n=2 64K cpu ina/gloo"]
    document = {"bench": "b", "ratios": [{"name": name, "value": 1.0} for name in names]}
    assert [ratio.name for ratio in guard.ratios_of(document)] == [
        "b: quantize float32 DRAM /memcpy"
    ]


@pytest.mark.parametrize(
    ("runs", "code"),
    [
        ([2.0], 0),
        ([1.3], 0),  # within the tolerance
        ([1.0, 1.9], 0),  # the second look finds it in order
        ([1.0, 1.1], 1),
    ],
)
def test_what_regresses_twice_is_told(
    runs: list[float],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    baseline = tmp_path / "baseline.json"
    guard.write_baseline(baseline, [Ratio("x", 2.0)])
    assert json.loads(baseline.read_text())["ratios"] == {"x": 2.0}
    left = list(runs)

    def measure(bench: tuple[str, ...]) -> list[Ratio]:
        return [Ratio("x", left.pop(0))]

    monkeypatch.setattr(guard, "BASELINE", baseline)
    monkeypatch.setattr(guard, "BENCHES", (("x",),))
    monkeypatch.setattr(guard, "measure", measure)
    monkeypatch.setattr("sys.argv", ["guard"])
    assert guard.main() == code
    assert left == []
    assert ("REGRESSED" in capsys.readouterr().out) == bool(code)


def test_a_ratio_that_is_gone_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline = tmp_path / "baseline.json"
    guard.write_baseline(baseline, [Ratio("x", 2.0), Ratio("gone", 2.0)])
    monkeypatch.setattr(guard, "BASELINE", baseline)
    monkeypatch.setattr(guard, "BENCHES", (("x",),))
    monkeypatch.setattr(guard, "measure", lambda bench: [Ratio("x", 2.0)])
    monkeypatch.setattr("sys.argv", ["guard"])
    assert guard.main() == 1
    assert "not measured any more: gone" in capsys.readouterr().out


def test_a_benchmark_that_fails_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failed(*_: Any, **__: Any) -> list[Ratio]:
        raise guard.BenchFailedError("pipeline: error: no compiler")

    monkeypatch.setattr(guard, "measure", failed)
    monkeypatch.setattr("sys.argv", ["guard"])
    assert guard.main() == 2
    assert capsys.readouterr().err.splitlines()[-1] == "error: pipeline: error: no compiler"


@pytest.mark.parametrize(("share", "held"), [(0.985, True), (0.9, False)])
def test_one_run_below_the_floor_of_the_wire_fails(
    share: float, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares = [0.99, 0.99, share, 0.99, 0.99]
    monkeypatch.undo()
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(default_window, "SEEDS", ())

    def measure(bench: Sequence[str]) -> list[Ratio]:
        share = 0.95 if "--window=adaptive" in bench else shares.pop(0)
        return [Ratio("n=8 64M ina/limit", share), Ratio("n=8 64M ina/gloo", 0.5)]

    lines = list(default_window.broken(measure))
    missed = "run 3: n=8 64M ina/limit 0.900, at least 0.98; `adaptive` had 0.950 just after"
    assert lines == ([] if held else [missed])
    assert shares == []


def test_without_root_the_wire_counts_as_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr("os.geteuid", lambda: 1)
    monkeypatch.setattr(default_window, "SEEDS", ())
    assert list(default_window.broken(lambda bench: [])) == [
        "the wire was not measured: shaped links need root"
    ]
