"""What is drawn: bars or curves, ticks in people's units, lines that can be told apart."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from matplotlib.axes import Axes
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from ina.bench import allreduce, ddp
from ina.bench.figure import figure_of
from ina.bench.plot import Panel
from ina.bench.report import rows_of
from ina.bench.spread import spread

CASE = allreduce.AllReduceCase("float32", 4, "sum", 256, 3, 1.0)
KIB, MIB = 1 << 10, 1 << 20


def rows(workers: tuple[int, ...], sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    made = []
    for n in workers:
        for size in sizes:
            for backend, factor in (("ina", 1.0), ("gloo", 2.0), ("mpi", 1.5)):
                time_s = factor * size * 1e-9
                made.append(
                    allreduce.make_measurement(
                        workers=n, backend=backend, count=size // 4, wrong=0,
                        times=spread([0.9 * time_s, time_s, 1.2 * time_s]),
                        limit_s=size * 5e-10 if backend == "ina" else None, gloo_s=size * 2e-9,
                        cpu_s=None, transport="udp", case=CASE,
                    )
                )  # fmt: skip
    return rows_of(made)


def drawn(panels: list[Panel]) -> list[Axes]:
    figure = figure_of(panels, "title")
    figure.canvas.draw()  # ticks have no texts before
    return figure.axes


def ticks(axis: Any) -> list[str]:
    low, high = sorted(axis.get_view_interval())
    return [
        text.get_text()
        for place, text in zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True)
        if low <= place <= high
    ]


def bars(ax: Axes) -> list[BarContainer]:
    return [found for found in ax.containers if isinstance(found, BarContainer)]


def lines(ax: Axes) -> dict[str, Any]:
    return {
        str(found.get_label()): found.lines[0]
        for found in ax.containers
        if isinstance(found, ErrorbarContainer)
    }


def test_sizes_and_times_have_units() -> None:
    time, rate, gain = drawn(allreduce.panels(rows((2, 4), (64 * KIB, MIB, 64 * MIB))))
    for ax in (time, rate):
        assert ticks(ax.xaxis) == ["64 KiB", "1 MiB", "64 MiB"]
    assert "1 ms" in ticks(time.yaxis)
    assert "10 ms" in ticks(time.yaxis)
    assert rate.get_ylabel() == "GB/s"
    assert ticks(gain.xaxis) == ["2", "4"]
    assert [text.get_text() for text in gain.texts] == ["as fast as Gloo"]


def test_memory_has_round_sizes() -> None:
    found = [
        allreduce.MemoryMeasurement(2, backend, size, size + 3 * MIB, 0)
        for backend in ("ina", "gloo")
        for size in (MIB, 64 * MIB)
    ]
    (ax,) = drawn(allreduce.memory_panels(rows_of(found)))
    assert ticks(ax.yaxis) == ["0 B", "16 MiB", "32 MiB", "48 MiB", "64 MiB"]


def test_lines_differ_in_more_than_colour_and_the_legend_shows_it() -> None:
    time, *_ = drawn(allreduce.panels(rows((2, 4), (64 * KIB, MIB))))
    found = lines(time)
    patterns = {name: line.get_linestyle() for name, line in found.items() if "2 workers" in name}
    assert len(patterns) == len(set(patterns.values())) == 4  # ina, gloo, mpi, limit
    assert found["ina, 2 workers"].get_color() == found["gloo, 2 workers"].get_color()
    assert found["ina, 2 workers"].get_color() != found["ina, 4 workers"].get_color()
    legend = time.get_legend()
    assert legend is not None
    assert {text.get_text() for text in legend.get_texts()} == found.keys()
    assert legend.handlelength >= 4  # "- -" and "- ." need room
    # Below the axes, where it hides no data.
    below = legend.get_window_extent().y1
    assert below < time.get_window_extent().y0


def test_error_bars_are_the_quartiles() -> None:
    time, rate, gain = drawn(allreduce.panels(rows((2, 4), (MIB, 64 * MIB))))
    row = rows((2,), (MIB,))[0]

    def ends(ax: Axes, label: str) -> list[float]:
        (found,) = [c for c in ax.containers if c.get_label() == label]
        assert isinstance(found, ErrorbarContainer)
        (bar,) = found.lines[2]
        return [float(y) for y in bar.get_segments()[0][:, 1]]

    assert ends(time, "ina, 2 workers") == pytest.approx([row["time_low_s"], row["time_high_s"]])
    gb = MIB / 1e9
    wanted = [gb / row["time_high_s"], gb / row["time_low_s"]]
    assert ends(rate, "ina, 2 workers") == pytest.approx(wanted)
    low, high = ends(gain, "1 MiB")
    assert low < 2.0 < high
    wanted_note = "quartiles, of a ratio those of both its times"
    assert wanted_note in figure_of(allreduce.panels(rows((2, 4), (MIB,))), "t").get_suptitle()


def test_one_number_of_workers_gives_bars_with_their_values() -> None:
    time, _, gain = drawn(allreduce.panels(rows((4,), (64 * KIB, MIB))))
    assert not bars(time)  # there are two sizes
    assert len(bars(gain)) == 2
    assert ticks(gain.xaxis) == ["64 KiB", "1 MiB"]
    assert gain.get_title() == "Gain (workers: 4)"
    assert [text.get_text() for text in gain.texts if text.get_text() == "2"] == ["2", "2"]
    assert gain.get_ylim()[0] == 0


def boxes(texts: Iterable[Text]) -> list[Bbox]:
    return [text.get_window_extent() for text in texts if text.get_text()]


def meet(one: Bbox, other: Bbox) -> bool:
    return bool(one.overlaps(other))


def test_one_size_gives_bars_that_can_be_told_apart() -> None:
    time, *_ = drawn(allreduce.panels(rows((2, 4), (MIB,))))
    assert time.get_title() == "Time (tensor: 1 MiB)"
    assert ticks(time.xaxis) == ["ina", "gloo", "mpi", "limit"] * 2
    (below,) = time.child_axes
    assert [text.get_text() for text in below.get_xticklabels()] == ["2 workers", "4 workers"]
    hatches = {bar.patches[0].get_hatch() for bar in bars(time)[:4]}
    assert len(hatches) == 4
    assert "1.05 ms" in [text.get_text() for text in time.texts]


@pytest.mark.parametrize("workers", [(4,), (2, 4), (2, 4, 8)])
def test_no_text_of_a_bar_meets_another(workers: tuple[int, ...]) -> None:
    for ax in drawn(allreduce.panels(rows(workers, (64 * KIB,))))[:2]:
        below = [text for child in ax.child_axes for text in child.get_xticklabels()]
        found = boxes([*ax.get_xticklabels(), *below, *ax.texts])
        assert len(found) >= len(workers) * 6
        assert [pair for pair in combinations(found, 2) if meet(*pair)] == []


def test_steps_of_a_model() -> None:
    def row(workers: int, backend: str, step_s: float) -> ddp.StepRow:
        return ddp.StepRow(
            *("digits", workers, backend, 1000, 4000, 1, step_s, 0.9 * step_s, 1.1 * step_s, 5),
            *(0.001, 100.0, "images", 0.1, None, None, 2.0, 0),
        )

    both = [row(n, b, s) for n in (2, 4) for b, s in (("ina", 0.01), ("gloo", 0.02))]
    step, gain = drawn(ddp.panels(rows_of(both)))
    assert set(lines(step)) == {"ina, digits", "gloo, digits"}
    assert "10 ms" in ticks(step.yaxis)
    assert set(lines(gain)) == {"digits"}
    step, gain = drawn(ddp.panels(rows_of(both[:2])))
    assert ticks(step.xaxis) == ["ina", "gloo"]
    assert len(bars(gain)) == 1
