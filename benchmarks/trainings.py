"""What ``ina bench training --save`` wrote: a short table, all rows, and curves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from matplotlib.figure import Figure

from benchmarks.comparisons import Section, Table
from benchmarks.measured import RESULTS
from ina.bench import report, training
from ina.bench.figure import figure_of
from ina.bench.report import Report
from ina.cli.bench.training import BENCH
from ina.errors import InvalidInputError

FOLDER = RESULTS / "training"


def reports() -> dict[str, Report]:
    """By their files' names. Raises InvalidInputError: one has ranks that differ."""
    found = {path.stem: report.load(path) for path in sorted(FOLDER.glob("*.json"))}
    for name, one in found.items():
        if one.wrong:
            raise InvalidInputError(f"{name}: {one.wrong} ranks with other parameters: no result")
    return found


def short() -> Table:
    """How much larger each way's loss is than float32's, by model and workers."""
    columns: dict[str, dict[str, str]] = {}
    ways: dict[str, None] = {}
    for one in reports().values():
        if one.settings["link"] != "loopback":
            continue  # that is of times
        for row in one.rows:
            column = columns.setdefault(f"{row['model']}, {row['workers']} workers", {})
            column[row["way"]] = _cell(row, one.settings["seeds"])
            ways[row["way"]] = None
    rows = [
        [f"`{way}`", training.WAYS[way], *(column.get(way, "") for column in columns.values())]
        for way in training.WAYS
        if way in ways
    ]
    return ["way", "", *columns], rows


def _cell(row: dict[str, Any], seeds: int) -> str:
    """``seeds``: that were asked for."""
    fewer = f", {row['seeds']} of {seeds} seeds" if row["seeds"] < seeds else ""
    if row["way"] == training.DENSE:
        return f"{row['test_loss']:.4f} ± {row['test_spread'] / row['test_loss']:.1%}{fewer}"
    return "" if row["off"] is None else f"{row['off']:+.2%} ({row['verdict']}{fewer})"


def sections() -> Iterator[Section]:
    """All rows."""
    for name, one in reports().items():
        titles = [column.title for column in BENCH.columns]
        rows = [
            [str(column.cell({**one.settings, **row})) for column in BENCH.columns]
            for row in one.rows
        ]
        machine = one.machine
        text = (
            f"{one.settings['steps']} steps, {one.settings['link']},"
            f" {machine.date[:10]}, ina {one.ina}, {machine.cores} cores of {machine.cpu}."
        )
        yield Section(name, text, titles, rows)


def figures() -> Iterator[tuple[str, Figure]]:
    """Loss by step."""
    for name, one in reports().items():
        yield name, figure_of(training.panels(one.rows), name)
