"""The demo's picture, also where there is little to draw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from ina.cli.demo.plot import figure_of
from ina.cli.demo.run import Training

GLOO = Training(
    backend="gloo", workers=4, seconds=1.0, losses=[2.3, 1.1, 0.4], accuracies=[0.5, 0.9],
    parameters=np.zeros(1, np.float32), parameters_sha256="", ranks=[],
)  # fmt: skip


def test_curves_and_their_difference() -> None:
    run = replace(GLOO, losses=[2.3, 1.1 + 1e-7, 0.4 - 1e-7])
    figure = figure_of(run, GLOO, loss_rate=0.05)
    figure.canvas.draw()
    losses, gap, accuracies = figure.axes
    assert "5 % packet loss" in figure.get_suptitle()
    assert {"2", "1", "0.5"} <= {text.get_text() for text in losses.get_yticklabels()}
    assert gap.get_title().endswith("(1 of 3 steps: equal)")
    assert list(gap.lines[0].get_xdata()) == [2, 3]  # type: ignore[arg-type]
    assert [line.get_label() for line in accuracies.lines] == ["ina, summed in P4", "Gloo"]


def test_one_epoch_gives_bars_and_equal_losses_are_said() -> None:
    one = replace(GLOO, accuracies=[0.9])
    _, gap, accuracies = figure_of(one, one, loss_rate=0.0).axes
    assert [text.get_text() for text in gap.texts] == ["equal in every step"]
    assert not accuracies.lines
    assert [text.get_text() for text in accuracies.texts] == ["90 %", "90 %"]
    names = [text.get_text() for text in accuracies.get_xticklabels()]
    assert names == ["ina, summed in P4", "Gloo"]
