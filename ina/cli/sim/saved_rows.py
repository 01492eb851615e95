"""What ``ina sim compare`` found as CSV, a file for each scenario; the documentation reads it."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from ina.errors import InvalidInputError
from ina.sim.routing.outcome import Outcome as RoutingOutcome
from ina.sim.windows.cell import Family
from ina.sim.windows.measure import Mean
from ina.sim.windows.outcome import Outcome, judge

_ABOUT = ("cell", "limit_gbit", "limit_by", "algorithm")
_ROUTING = tuple(it.name for it in fields(RoutingOutcome) if it.name != "family")
_TEXTS = ("case", "policy", "limit", "refused")


def check_folder(folder: Path) -> None:
    """Before anything is run. Raises :class:`InvalidInputError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"--save {folder}: {error.strerror}") from None


def save_windows(folder: Path, outcomes: Sequence[Outcome], families: Sequence[Family]) -> None:
    """Each metric has two columns, its mean and the half width of its 95 % confidence interval,
    which is empty where there is one seed. Of a file only rows that were measured are replaced.

    Raises OSError, :class:`InvalidInputError`.
    """
    for family in families:
        found = {(it.cell, it.algorithm): it for it in outcomes if it.family == family.name}
        if not found:
            continue
        there = {(it.cell, it.algorithm): it for it in read_windows(folder, family)}
        rows = [_windows_cells(it, family.columns) for it in (there | found).values()]
        names = [column for name in family.columns for column in (name, f"± {name}")]
        _write(folder / f"{family.name}.csv", [*_ABOUT, *names, "errors"], rows)


def _windows_cells(it: Outcome, columns: Sequence[str]) -> list[str]:
    means = [it.metrics.get(name, Mean(math.nan, math.nan, 0)) for name in columns]
    numbers = [_text(number) for mean in means for number in (mean.mean, mean.half_width)]
    about = [it.cell, _text(it.limit_gbit), it.limit_by, it.algorithm]
    return [*about, *numbers, "; ".join(it.errors)]


def read_windows(folder: Path, family: Family) -> list[Outcome]:
    """Of one scenario, judged by what is promised now; none where there is no file.

    How many seeds a mean is of is not saved: it is 0. Raises :class:`InvalidInputError`.
    """
    found = []
    for row in _read(folder / f"{family.name}.csv", {*_ABOUT, *family.columns}):
        numbers = {name: (_number(row[name]), _number(row[f"± {name}"])) for name in family.columns}
        metrics = {
            name: Mean(mean, half, 0) for name, (mean, half) in numbers.items() if mean == mean
        }
        errors = row["errors"].split("; ") if row["errors"] else []
        about = (row["cell"], row["algorithm"], float(row["limit_gbit"]), row["limit_by"])
        found.append(Outcome(family.name, *about, metrics, [], errors))
    means: dict[str, dict[str, Mapping[str, Mean]]] = {}
    for it in found:
        means.setdefault(it.cell, {})[it.algorithm] = it.metrics
    for it in found:
        it.verdicts.extend(judge(family.promises, it.algorithm, means[it.cell]))
    return found


def save_routing(folder: Path, outcomes: Sequence[RoutingOutcome]) -> None:
    """Raises OSError, :class:`InvalidInputError`."""
    for family in dict.fromkeys(it.family for it in outcomes):
        found = {(it.case, it.policy): it for it in outcomes if it.family == family}
        there = {(it.case, it.policy): it for it in read_routing(folder, family)}
        rows = [_routing_cells(it) for it in (there | found).values()]
        _write(folder / f"{family}.csv", _ROUTING, rows)


def _routing_cells(it: RoutingOutcome) -> list[str]:
    values = [getattr(it, name) for name in _ROUTING]
    return [value if isinstance(value, str) else _text(value) for value in values]


def read_routing(folder: Path, family: str) -> list[RoutingOutcome]:
    """Of one scenario; none where there is no file. Raises :class:`InvalidInputError`."""
    found = []
    for row in _read(folder / f"{family}.csv", set(_ROUTING)):
        values: dict[str, Any] = {
            name: row[name] if name in _TEXTS else _number(row[name]) for name in _ROUTING
        }
        found.append(RoutingOutcome(family, **values))
    return found


def _text(number: float) -> str:
    return "" if math.isnan(number) else f"{number:.6g}"


def _number(text: str) -> float:
    return float(text) if text else math.nan


def _write(path: Path, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([names, *rows])


def _read(path: Path, names: set[str]) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if rows and not names <= rows[0].keys():
        missing = ", ".join(sorted(names - rows[0].keys()))
        raise InvalidInputError(f"{path}: no column {missing}")
    return rows
