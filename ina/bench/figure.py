"""Draws panels with matplotlib: curves; or bars, where nothing changes along the x axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    Locator,
    LogLocator,
    MaxNLocator,
    MultipleLocator,
    NullLocator,
)

from ina.bench.plot import Axis, Panel, Point, Unit
from ina.units import size_text, time_text

_COLOURS = (
    *("#08306b", "#d94801", "#238b45", "#6a51a3", "#a50f15", "#525252"),
    *("#0096a0", "#c51b8a", "#8c6d31", "#7fbc41"),
)
# Line and marker of each backend: they must be told apart without colour, too.
_STYLES = {
    "": ("-", "o"),
    "ina": ("-", "o"),
    "gloo": ("--", "s"),
    "mpi": ("-.", "^"),
    "limit": (":", ""),
}
_HATCHES = {"gloo": "//", "mpi": "..", "limit": "xx"}
_TEXTS: dict[Unit, Callable[[float], str]] = {
    "bytes": size_text,
    "s": time_text,
    "GB/s": lambda value: f"{value:.3g}",
    "ratio": lambda value: f"{value:.3g}",
    "workers": lambda value: f"{value:.0f}",
    "steps": lambda value: f"{value:.0f}",
    "loss": lambda value: f"{value:.3g}",
}
_MOST_TICKS = 8
_ROOMY_BARS = 6
"""With more the numbers above them would meet, so they stand upright."""
_GROUP_GAP = 0.5
"""Between the bars of two groups, in bars."""


def draw(panels: Sequence[Panel], title: str, path: Path) -> None:
    """Writes the panels, side by side, to a file. Raises OSError."""
    figure_of(panels, title).savefig(path, dpi=120)


def figure_of(panels: Sequence[Panel], title: str) -> Figure:
    """The panels side by side; error bars are the quartiles, of a ratio its times' quartiles, and
    bands what the panel says."""
    figure = Figure(figsize=(5.0 * len(panels), 4.8), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for panel, ax in zip(panels, axes, strict=True):
        found = {point.x for curve in panel.curves for point in curve.points}
        if len(found) > 1 and panel.band:
            _draw_bands(ax, panel)
        elif len(found) > 1:
            _draw_curves(ax, panel, sorted(found))
        else:
            _draw_bars(ax, panel)
        _y_axis(ax, panel)
        if panel.level is not None:
            level, name = panel.level
            ax.axhline(level, color="#969696", linewidth=1, zorder=0)
            ax.annotate(
                name, (1, level), xycoords=("axes fraction", "data"), xytext=(-3, 2),
                textcoords="offset points", ha="right", color="#525252", fontsize="small",
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
            )  # fmt: skip
    figure.suptitle(title + _note(panels), fontsize="medium")
    return figure


def _note(panels: Sequence[Panel]) -> str:
    """What the ends of points are."""
    spread = [
        panel
        for panel in panels
        if any(point.low is not None for curve in panel.curves for point in curve.points)
    ]
    if not spread:
        return ""
    if spread[0].band:
        return f"\nbands: {spread[0].band}"
    of_ratios = any(panel.y.unit == "ratio" for panel in panels)
    return "\nerror bars: quartiles" + of_ratios * ", of a ratio those of both its times"


def _draw_bands(ax: Axes, panel: Panel) -> None:
    """Curves of many points."""
    for number, curve in enumerate(panel.curves):
        points = sorted(curve.points)
        colour, xs = _COLOURS[number % len(_COLOURS)], [point.x for point in points]
        ax.plot(xs, [point.y for point in points], label=curve.label, color=colour, linewidth=1.2)
        if all(point.low is not None and point.high is not None for point in points):
            lows, highs = ([point[end] for point in points] for end in (2, 3))
            ax.fill_between(xs, lows, highs, color=colour, alpha=0.15, linewidth=0)  # type: ignore[arg-type]
    ax.xaxis.set_major_locator(MaxNLocator(_MOST_TICKS))
    _label(ax, panel)


def _draw_curves(ax: Axes, panel: Panel, xs: Sequence[float]) -> None:
    groups = list(dict.fromkeys(curve.group for curve in panel.curves))
    for curve in panel.curves:
        points = sorted(curve.points)
        line, marker = _STYLES.get(curve.backend, ("--", "d"))
        ax.errorbar(
            [point.x for point in points],
            [point.y for point in points],
            yerr=_errors(points),
            label=curve.label,
            color=_COLOURS[groups.index(curve.group) % len(_COLOURS)],
            linestyle=line,
            marker=marker,
            markersize=4,
            linewidth=1.4,
            elinewidth=1,
            capsize=3,
        )
    if panel.x.log:
        ax.set_xscale("log", base=2)
    every = -(-len(xs) // _MOST_TICKS)
    ax.xaxis.set_major_locator(FixedLocator(xs[::every]))
    ax.xaxis.set_minor_locator(NullLocator())
    _label(ax, panel)


def _label(ax: Axes, panel: Panel) -> None:
    """The x axis, what the panel is, and the curves' names."""
    ax.xaxis.set_major_formatter(_formatter(panel.x))
    ax.set(title=panel.title, xlabel=panel.x.label)
    ax.grid(alpha=0.3)
    # Below: inside it would hide what it explains. Long enough for a line's pattern to be seen.
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize="small", handlelength=4,
        frameon=False,
    )  # fmt: skip


def _draw_bars(ax: Axes, panel: Panel) -> None:
    """One bar a curve, those of a group side by side: with one x there is no line to draw."""
    groups = list(dict.fromkeys(curve.group for curve in panel.curves))
    curves = sorted(panel.curves, key=lambda curve: groups.index(curve.group))
    has_backends = any(curve.backend for curve in curves)
    gap = _GROUP_GAP if has_backends else 0.0
    places = [place + gap * groups.index(curve.group) for place, curve in enumerate(curves)]
    text, crowded = _TEXTS[panel.y.unit], len(curves) > _ROOMY_BARS
    for place, curve in zip(places, curves, strict=True):
        (point,) = curve.points
        bars = ax.bar(
            place,
            point.y,
            width=0.6,
            label=curve.label,
            yerr=_errors([point]),
            color=_COLOURS[groups.index(curve.group) % len(_COLOURS)],
            alpha=0.75,
            hatch=_HATCHES.get(curve.backend),
            capsize=3 if crowded else 4,
        )
        ax.bar_label(
            bars, labels=[text(point.y)], padding=4, rotation=90 if crowded else 0,
            fontsize="x-small" if crowded else "small",
        )  # fmt: skip
    names = [curve.backend or curve.group for curve in curves]
    ax.set_xticks(places, names, fontsize="x-small" if crowded else "small")
    if has_backends and len(groups) > 1:
        of_group: dict[str, list[float]] = {group: [] for group in groups}
        for place, curve in zip(places, curves, strict=True):
            of_group[curve.group].append(place)
        below = ax.secondary_xaxis(location=0)
        below.set_xticks(
            [sum(held) / len(held) for held in of_group.values()],
            groups,
            fontsize="small",
        )
        below.tick_params("x", length=0, pad=18)  # below the backends' names
    ax.set_axisbelow(True)
    ax.margins(y=0.25 if crowded else 0.15)
    if (missing := 3 - len(curves)) > 0:  # no bar as wide as the axes
        ax.set_xlim(places[0] - 0.5 - missing / 2, places[-1] + 0.5 + missing / 2)
    only = [point.x for curve in curves for point in curve.points][:1]
    at = f" ({panel.x.label}: {_TEXTS[panel.x.unit](only[0])})" if only else ""
    ax.set(title=panel.title + at)
    ax.grid(alpha=0.3, axis="y")


def _y_axis(ax: Axes, panel: Panel) -> None:
    has_bars = bool(ax.patches)
    if panel.y.log and not has_bars:
        ax.set_yscale("log")
        low, high = ax.get_ylim()
        steps = (1.0,) if high > 1000 * low else (1.0, 2.0, 5.0)
        ax.yaxis.set_major_locator(LogLocator(10, subs=steps))
        ax.yaxis.set_minor_locator(NullLocator())
    else:
        if panel.y.from_zero:
            ax.set_ylim(bottom=0)
        locator: Locator = MaxNLocator(6, steps=[1, 2, 2.5, 5, 10])
        if panel.y.unit == "bytes":  # powers of two: 64 MiB, not 61
            locator = MultipleLocator(2 ** max(0, math.ceil(math.log2(ax.get_ylim()[1] / 6))))
        ax.yaxis.set_major_locator(locator)
    ax.yaxis.set_major_formatter(_formatter(panel.y))
    ax.set_ylabel(panel.y.label)


def _formatter(axis: Axis) -> FuncFormatter:
    text = _TEXTS[axis.unit]
    return FuncFormatter(lambda value, _: text(value))


def _errors(points: Sequence[Point]) -> list[list[float]] | None:
    """Distances down and up; None: nothing is known of any point."""
    if all(point.low is None for point in points):
        return None
    down = [point.y - (point.y if point.low is None else point.low) for point in points]
    up = [(point.y if point.high is None else point.high) - point.y for point in points]
    return [[max(0.0, value) for value in down], [max(0.0, value) for value in up]]
