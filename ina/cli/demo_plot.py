"""Draws the demo's curves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ina.cli.demo_run import Training

# The curves coincide: a wide pale one under a thin dark one shows both.
_INA: dict[str, Any] = {"label": "ina, summed in P4", "linewidth": 5, "color": "#fdae61"}
_GLOO: dict[str, Any] = {"label": "Gloo", "linewidth": 1.2, "color": "#08306b"}


def plot(run: Training, gloo: Training, path: Path, *, loss_rate: float) -> Path:
    """Draw loss, its difference and accuracy of both trainings as a PNG; returns ``path``."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (losses, gap, accuracies) = pyplot.subplots(
        1, 3, figsize=(13, 4.2), layout="constrained"
    )
    steps = np.arange(1, len(run.losses) + 1)
    losses.semilogy(steps, run.losses, **_INA)
    losses.semilogy(steps, gloo.losses, **_GLOO)
    losses.set(title="Training loss", xlabel="step", ylabel="cross-entropy of rank 0's batch")
    losses.legend()

    # Equal losses have no logarithm: their steps stay empty.
    difference = np.abs(np.subtract(run.losses, gloo.losses))
    gap.semilogy(steps, np.where(difference > 0, difference, np.nan), ".", color="#a50026")
    gap.set(title="How far the two losses are apart", xlabel="step", ylabel="|ina - Gloo|")

    epochs = np.arange(1, len(run.accuracies) + 1)
    accuracies.plot(epochs, 100 * np.array(run.accuracies), marker="o", markersize=8, **_INA)
    accuracies.plot(epochs, 100 * np.array(gloo.accuracies), marker=".", **_GLOO)
    accuracies.set(title="Test accuracy", xlabel="epoch", ylabel="% of the test images")
    accuracies.xaxis.get_major_locator().set_params(integer=True)
    accuracies.legend(loc="lower right")

    for axes in (losses, gap, accuracies):
        axes.grid(alpha=0.3)
    loss = f" ({100 * loss_rate:g} % packet loss)" if loss_rate else ""
    figure.suptitle(f"8x8 digits, {run.workers} workers, same seed: ina{loss} and Gloo")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return path
