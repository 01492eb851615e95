"""What ``ina sim compare`` saved: short tables, all rows, and a plot each."""

from __future__ import annotations

import io
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from benchmarks.measured import RESULTS
from ina.cli.sim import routing_view, windows_view
from ina.cli.sim.saved_rows import read_routing, read_windows
from ina.congestion import ALGORITHMS, Congestion
from ina.sim.routing import outcome as routing
from ina.sim.routing.compare import FAMILIES as NETWORKS
from ina.sim.routing.compare import SHIPPED
from ina.sim.windows.families import FAMILIES
from ina.sim.windows.outcome import Outcome

Table = tuple[list[str], list[list[str]]]
"""Titles, and rows."""
_TIMES = (1, 2, 3, 5, 10, 20, 50)
_WINDOWS, _ROUTING = RESULTS / "windows", RESULTS / "routing"


@dataclass(frozen=True)
class Section:
    """All rows of a scenario."""

    name: str
    text: str
    titles: Sequence[str]
    rows: Sequence[Sequence[str]]


def _windows() -> dict[str, list[Outcome]]:
    found = {name: read_windows(_WINDOWS, family) for name, family in FAMILIES.items()}
    return {name: rows for name, rows in found.items() if rows}


def _routing() -> dict[str, list[routing.Outcome]]:
    found = {name: read_routing(_ROUTING, name) for name in (*NETWORKS, SHIPPED)}
    return {name: rows for name, rows in found.items() if rows}


def promises_kept() -> Table:
    """By scenario and algorithm: how many of the default's promises it keeps, of all its cells."""
    rows = []
    for name, outcomes in _windows().items():
        row = [name]
        for algorithm in ALGORITHMS:
            of = [it for it in outcomes if it.algorithm == algorithm]
            judged = [one.holds for it in of for one in it.verdicts if one.holds is not None]
            row.append(f"{sum(judged)}/{len(judged)}" if judged else "-")
        rows.append(row)
    return ["scenario", *(f"`{it}`" for it in ALGORITHMS)], rows


def over_bound() -> Table:
    """By scenario and policy: the median over its cases of a step's time in its bound's."""
    found = _routing()
    policies = list(dict.fromkeys(it.policy for of in found.values() for it in of))
    rows = []
    for name, outcomes in found.items():
        row = [name]
        for policy in policies:
            over = [it.over for it in outcomes if it.policy == policy and not it.refused]
            row.append(f"{statistics.median(over):.2f}" if over else "-")
        rows.append(row)
    return ["scenario", *(f"`{it}`" for it in policies)], rows


def windows_sections() -> Iterator[Section]:
    """In the documentation's order."""
    for name, outcomes in _windows().items():
        family = FAMILIES[name]
        promised = "; ".join(promise.text for promise in family.promises)
        promises = f" `{Congestion.algorithm}` promises: {promised}." if promised else ""
        text = f"{family.what[0].upper()}{family.what[1:]}.{promises}"
        rows = [windows_view.cells(family, it) for it in outcomes]
        yield Section(name, text, windows_view.columns(family), rows)


def routing_sections() -> Iterator[Section]:
    """In the documentation's order."""
    for name, outcomes in _routing().items():
        what = routing_view.what(name)
        rows = [routing_view.cells(it) for it in outcomes]
        yield Section(name, f"{what[0].upper()}{what[1:]}.", routing_view.columns(name), rows)


def windows_figures() -> Iterator[tuple[str, Figure]]:
    """By scenario; a panel for each metric of which something is promised."""
    for name, outcomes in _windows().items():
        family = FAMILIES[name]
        panels: dict[str, list[int]] = {}  # by metric: which promises
        for number, it in enumerate(family.promises):
            times = f", times {it.relative_to}'s" if it.relative_to else ""
            panels.setdefault(f"{it.metric}{times}", []).append(number)
        if not panels:
            continue
        rows = math.ceil(len(panels) / 3)
        figure = Figure(figsize=(10, 2.0 * rows), layout="constrained")
        axes: Any = figure.subplots(rows, 3, squeeze=False).flat
        for ax in axes[len(panels) :]:
            ax.axis("off")
        for ax, (title, numbers) in zip(axes, panels.items(), strict=False):
            values = [(it.algorithm, it.verdicts[numbers[0]].value) for it in outcomes]
            _points(ax, values, [family.promises[number].bound for number in numbers])
            ax.set_title(title, fontsize="small")
        yield name, figure


def routing_figures() -> Iterator[tuple[str, Figure]]:
    """By scenario."""
    for name, outcomes in _routing().items():
        figure = Figure(figsize=(7, 2.4), layout="constrained")
        ax = figure.subplots()
        _points(ax, [(it.policy, it.over) for it in outcomes], [1.0])
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(FixedLocator(_TIMES))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_locator(NullLocator())
        ax.set_xlabel("time of a step ÷ its bound", fontsize="small")
        yield name, figure


def _points(ax: Any, values: Sequence[tuple[str, float]], bounds: Sequence[float]) -> None:
    """A line a name, and on it a point for each cell; dotted: what is promised."""
    names = list(dict.fromkeys(name for name, _ in values))
    shown = [(value, names.index(name)) for name, value in values if math.isfinite(value)]
    ax.plot(*zip(*shown, strict=True), "|", color="#08306b", markersize=8)
    for bound in bounds:
        ax.axvline(bound, color="black", linewidth=0.8, linestyle=":")
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(labelsize="x-small")


def svg(figure: Figure) -> str:
    """The same figure gives the same text: no date, no random names."""
    out = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "ina", "svg.fonttype": "none"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()
