"""Draws windows, queues and goodput over virtual time; :func:`check_plot_path` comes first."""

from __future__ import annotations

from pathlib import Path

from ina.sim.report import Report

_MOST_QUEUES = 6


def plot(report: Report, path: Path) -> None:
    """Writes the figure. Raises OSError."""
    from matplotlib.figure import Figure

    samples = report.samples
    at_ms = [1e3 * at_s for at_s in samples.at_s]
    figure = Figure(figsize=(9, 8), layout="constrained")
    rows = figure.subplots(3, 1, sharex=True)
    longest = sorted(samples.queues, key=lambda name: -max(samples.queues[name]))[:_MOST_QUEUES]
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
            ax.legend(fontsize="small", loc="upper right")
    rows[-1].set_xlabel("virtual time, ms")
    figure.suptitle(f"{report.scenario}, seed {report.seed}")
    figure.savefig(path, dpi=120)
