"""Draws the demo's curves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ina.cli.demo.run import Training

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The curves coincide: a wide pale one under a thin dark one shows both.
_INA: dict[str, Any] = {"label": "ina, summed in P4", "linewidth": 5, "color": "#fdae61"}
_GLOO: dict[str, Any] = {"label": "Gloo", "linewidth": 1.2, "color": "#08306b"}


def plot(run: Training, gloo: Training, path: Path, *, loss_rate: float) -> Path:
    """Draw loss, its difference and accuracy of both trainings as a PNG; returns ``path``."""
    figure_of(run, gloo, loss_rate=loss_rate).savefig(path, dpi=120)
    return path


def figure_of(run: Training, gloo: Training, *, loss_rate: float) -> Figure:
    """What :func:`plot` writes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2), layout="constrained")
    losses, gap, accuracies = figure.subplots(1, 3)
    _losses(losses, run, gloo)
    _gap(gap, run, gloo)
    _accuracies(accuracies, run, gloo)
    for axes in (losses, gap, accuracies):
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
    loss = f" ({100 * loss_rate:g} % packet loss)" if loss_rate else ""
    figure.suptitle(f"8x8 digits, {run.workers} workers, same seed: ina{loss} and Gloo")
    return figure


def _losses(axes: Axes, run: Training, gloo: Training) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    steps = np.arange(1, len(run.losses) + 1)
    axes.semilogy(steps, run.losses, **_INA)
    axes.semilogy(steps, gloo.losses, **_GLOO)
    axes.set(title="Training loss", xlabel="step", ylabel="cross-entropy of rank 0's batch")
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1.0, 1.5, 2.0, 3.0, 5.0, 7.0)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.legend()


def _gap(axes: Axes, run: Training, gloo: Training) -> None:
    difference = np.abs(np.subtract(run.losses, gloo.losses))
    differs = difference > 0  # equal losses have no logarithm
    steps = np.arange(1, len(difference) + 1)
    title = "How far the two losses are apart"
    if differs.any():
        axes.semilogy(steps[differs], difference[differs], ".", color="#a50026")
        if not differs.all():
            title += f"\n({np.count_nonzero(~differs)} of {len(steps)} steps: equal)"
    else:
        axes.set_yticks([])
        axes.text(0.5, 0.5, "equal in every step", ha="center", transform=axes.transAxes)
    axes.set(title=title, xlabel="step", ylabel="|ina - Gloo|")
    axes.set_xlim(0, len(steps) + 1)


def _accuracies(axes: Axes, run: Training, gloo: Training) -> None:
    percents = [100 * np.array(training.accuracies) for training in (run, gloo)]
    if len(run.accuracies) == 1:  # one point is no curve
        for place, (style, (percent,)) in enumerate(zip((_INA, _GLOO), percents, strict=True)):
            bars = axes.bar(place, percent, width=0.6, color=style["color"])
            axes.bar_label(bars, labels=[f"{percent:.4g} %"], padding=3)
        axes.set_xticks([0, 1], [_INA["label"], _GLOO["label"]])
        axes.set(
            title="Test accuracy after one epoch", ylabel="% of the test images", ylim=(0, 110)
        )
        return
    from matplotlib.ticker import MaxNLocator

    epochs = np.arange(1, len(run.accuracies) + 1)
    axes.plot(epochs, percents[0], marker="o", markersize=8, **_INA)
    axes.plot(epochs, percents[1], marker=".", **_GLOO)
    axes.set(title="Test accuracy", xlabel="epoch", ylabel="% of the test images")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(loc="lower right")
