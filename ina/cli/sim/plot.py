"""Draws windows, queues and goodput over virtual time; ``check_picture`` comes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ina.sim.report import Report, Samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_QUEUES = 6
_MARGIN = 0.02
"""Of the time that is shown, before something begins and after the end."""


def plot(report: Report, path: Path) -> None:
    """Writes the figure. Raises OSError."""
    figure_of(report).savefig(path, dpi=120)


def figure_of(report: Report) -> Figure:
    """From when on there is something to see; names are beside the curves, not on them."""
    from matplotlib.figure import Figure

    samples = report.samples
    at_ms = [1e3 * at_s for at_s in samples.at_s]
    figure = Figure(figsize=(10, 8), layout="constrained")
    rows = figure.subplots(3, 1, sharex=True)
    longest = sorted(samples.queues, key=lambda name: -max(samples.queues[name], default=0))[
        :_MOST_QUEUES
    ]
    panels = (
        ("packets in flight, at most", samples.windows, 1.0, list(samples.windows)),
        ("queue, KiB", samples.queues, 1 / 1024, longest),
        ("goodput, Gbit/s a worker", samples.goodput, 1.0, list(samples.goodput)),
    )
    for ax, (title, series, scale, names) in zip(rows, panels, strict=True):
        for name in names:
            values = [scale * value for value in series[name]]
            ax.step(at_ms[: len(values)], values, where="post", label=name, linewidth=1)
        ax.set_ylabel(title)
        ax.set_ylim(bottom=0)
        ax.grid(alpha=0.3)
        if names:
            ax.legend(
                fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False
            )  # fmt: skip
    rows[-1].set_xlabel("virtual time, ms")
    title = f"{report.scenario}, seed {report.seed}"
    if at_ms:
        begin = _first_to_see(samples)
        first = at_ms[begin]
        margin = _MARGIN * (at_ms[-1] - first) or 1.0
        rows[-1].set_xlim(max(first - margin, 0.0), at_ms[-1] + margin)
        if begin and first > margin:
            title += f"\nnothing moves before {first:.4g} ms: jobs join"
    figure.suptitle(title)
    return figure


def _first_to_see(samples: Samples) -> int:
    """Index of the first sample in which something is above zero; of none: 0."""
    groups: Sequence[Mapping[str, list[float]]]
    groups = (samples.windows, samples.queues, samples.goodput)
    firsts = (
        next((index for index, value in enumerate(values) if value), None)
        for series in groups
        for values in series.values()
    )
    return min((first for first in firsts if first is not None), default=0)
