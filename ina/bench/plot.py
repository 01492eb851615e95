"""Draws a report: time and bandwidth against size, gain against the number of workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ina.errors import InvalidInputError, MissingToolError

_COLOURS = ("#08306b", "#d94801", "#238b45", "#6a51a3", "#a50f15", "#525252")
SUFFIXES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Curve:
    """One line of a panel."""

    label: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False
    """A peer or a limit, not ina."""


@dataclass(frozen=True)
class Panel:
    """One set of axes."""

    title: str
    x: str
    y: str
    curves: Sequence[Curve]
    log_x: bool = False
    log_y: bool = False
    level: float | None = None
    """A horizontal line: where the two are equal."""


def check_plot_path(path: Path) -> None:
    """Before anything is measured: raises InvalidInputError, MissingToolError."""
    import importlib.util

    if path.suffix not in SUFFIXES:
        raise InvalidInputError(f"--plot {path}: want a name that ends in {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise InvalidInputError(f"--plot {path}: there is no folder {path.parent}")
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingToolError("--plot needs matplotlib: pip install matplotlib")


def draw(panels: Sequence[Panel], title: str, path: Path) -> None:
    """Writes the panels, side by side, to a file. Raises OSError."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, len(panels), figsize=(4.6 * len(panels), 4.2), layout="constrained", squeeze=False
    )
    for panel, ax in zip(panels, axes[0], strict=True):
        if panel.level is not None:
            ax.axhline(panel.level, color="#969696", linewidth=1)
        labels = list(dict.fromkeys(_family(curve) for curve in panel.curves))
        for curve in panel.curves:
            ax.plot(
                *zip(*sorted(curve.points), strict=True),
                label=curve.label,
                color=_COLOURS[labels.index(_family(curve)) % len(_COLOURS)],
                linestyle="--" if curve.dashed else "-",
                marker=".",
            )
        ax.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
        if panel.log_x:
            ax.set_xscale("log", base=2)
        if panel.log_y:
            ax.set_yscale("log")
        ax.grid(alpha=0.3)
        if panel.curves:
            ax.legend(fontsize="small")
    figure.suptitle(title, fontsize="medium")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def curves(
    rows: Iterable[dict[str, Any]],
    label: Callable[[dict[str, Any]], str],
    point: Callable[[dict[str, Any]], tuple[float, float]],
    dashed: Callable[[dict[str, Any]], bool] = lambda row: False,
) -> list[Curve]:
    """Rows of one label make one line."""
    found: dict[str, list[tuple[float, float]]] = {}
    style: dict[str, bool] = {}
    for row in rows:
        found.setdefault(label(row), []).append(point(row))
        style[label(row)] = dashed(row)
    return [Curve(name, points, style[name]) for name, points in found.items()]


def _family(curve: Curve) -> str:
    """``ina, 4 workers`` and ``gloo, 4 workers`` have one colour."""
    return curve.label.partition(", ")[2] or curve.label
