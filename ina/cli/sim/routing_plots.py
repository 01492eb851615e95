"""Draws how far policies are from the bound: a bar each, grouped by case."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ina.sim.routing.outcome import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAR = 0.16
"""Height of a bar, inches."""


def draw_all(outcomes: Sequence[Outcome], folder: Path) -> list[Path]:
    """Writes an SVG for each family, and returns their paths. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    families = dict.fromkeys(it.family for it in outcomes)
    return [
        _draw(family, [it for it in outcomes if it.family == family], folder) for family in families
    ]


def _draw(family: str, outcomes: Sequence[Outcome], folder: Path) -> Path:
    from matplotlib.figure import Figure

    cases = list(dict.fromkeys(it.case for it in outcomes))
    policies = list(dict.fromkeys(it.policy for it in outcomes))
    height = _BAR * len(cases) * (len(policies) + 1) + 1.2
    figure = Figure(figsize=(9.0, height), layout="constrained")
    axes: Axes = figure.subplots()
    for number, name in enumerate(policies):
        of = {it.case: it for it in outcomes if it.policy == name and not it.refused}
        at = [cases.index(case) * (len(policies) + 1) + number for case in of]
        bars: Any = axes.barh(at, [it.over for it in of.values()], height=0.9, label=name)
        axes.bar_label(bars, [f"{it.over:.2f}" for it in of.values()], padding=2, fontsize=6)
    middles = [case * (len(policies) + 1) + (len(policies) - 1) / 2 for case, _ in enumerate(cases)]
    axes.set_yticks(middles, cases, fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=0.8, linestyle=":")
    axes.set_xlabel("time of a step ÷ its bound")
    axes.legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    axes.set_title(family, fontsize="medium")
    path = folder / f"{family}.svg"
    figure.savefig(path, metadata={"Date": None})
    return path
