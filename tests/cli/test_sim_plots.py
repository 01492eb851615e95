"""What ``ina sim`` draws: nothing stands on the data, and time begins where something does."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ina.cli.sim.plot import figure_of
from ina.cli.sim.windows_plots import _completions, _over_time
from ina.sim.report import Report, Samples
from ina.sim.windows.cell import Series
from ina.sim.windows.families import FAMILIES

FAMILY = FAMILIES["alone"]
CELL = next(cell for cell in FAMILY.cells if cell.plot)
ALGORITHMS = ("ina", "adaptive", "fixed", "a2tp", "aimd", "dctcp", "panama", "swift")


def report(*, join_ms: float, end_ms: float, jobs: int = 3) -> Report:
    at_s = [ms / 1e3 for ms in range(1, round(end_ms) + 1)]
    wave = [0.0 if 1e3 * s < join_ms else 40 + 30 * math.sin(2000 * s) for s in at_s]
    samples = Samples(
        at_s,
        {f"job-{number}": wave for number in range(jobs)},
        {f"h{number}>s1": [1024 * it for it in wave] for number in range(9)},
        {f"job-{number}": [it / 10 for it in wave] for number in range(jobs)},
    )
    return Report("star", 1, end_ms / 1e3, 1.0, 1, [], [], [], [], [], samples, 1)


def legends_on_data(figure: Any) -> list[str]:
    """Texts of legends that lie within the axes of a panel which has curves."""
    figure.canvas.draw()
    boxes = [ax.get_window_extent() for ax in figure.axes if ax.lines]
    return [
        str(legend.get_texts())
        for ax in figure.axes
        if (legend := ax.get_legend()) is not None
        for box in boxes
        if box.shrunk(0.98, 0.98).overlaps(legend.get_window_extent())
    ]


def test_a_run_is_drawn_from_when_something_moves() -> None:
    figure = figure_of(report(join_ms=101, end_ms=120))
    left, right = figure.axes[-1].get_xlim()
    assert 100 <= left <= 101
    assert 120 <= right <= 121
    assert "nothing moves before 101 ms" in figure.get_suptitle()
    assert legends_on_data(figure) == []


@pytest.mark.parametrize("end_ms", [0, 1, 2])
def test_a_run_in_which_nothing_moves_is_drawn_too(end_ms: int) -> None:
    figure = figure_of(report(join_ms=math.inf, end_ms=end_ms))
    assert "nothing moves" not in figure.get_suptitle()


def test_algorithms_have_a_row_each_that_a_page_can_show() -> None:
    one = Series(
        [float(ms) for ms in range(50)],
        {f"job-{number}": [10.0 + number] * 50 for number in range(4)},
        {"s1>h1": [100.0] * 50, "s1>h2": [1.0] * 50},
        {f"job-{number}": [5.0] * 50 for number in range(4)},
    )
    figure = _over_time(FAMILY, CELL, dict.fromkeys(ALGORITHMS, one))
    figure.canvas.draw()
    assert figure.get_size_inches()[0] <= 10  # a page is as wide as 800 pixels
    panels = [ax for ax in figure.axes if ax.lines]
    assert len(panels) == 3 * len(ALGORITHMS)
    assert min(ax.get_window_extent().width / figure.dpi for ax in panels) > 2
    assert min(ax.get_window_extent().height / figure.dpi for ax in panels) > 1.2
    assert {ax.get_ylabel() for ax in panels} == {"", *ALGORITHMS}
    assert legends_on_data(figure) == []


def test_completions_are_not_hidden() -> None:
    figure = _completions(FAMILY, CELL, {name: [1.0, 10.0, 100.0] for name in ALGORITHMS})
    assert legends_on_data(figure) == []


def test_the_legend_of_a_plot_that_hides_data_is_found() -> None:
    figure = _completions(FAMILY, CELL, {"ina": [1.0, 10.0]})
    figure.axes[0].legend(loc="center")
    assert legends_on_data(figure) != []
