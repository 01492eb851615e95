"""Draws what algorithms did in a cell: windows, queue and goodput over time, completion times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ina.sim.windows.cell import Cell, Family, Series
from ina.sim.windows.outcome import Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_LINES = 10
"""With more jobs or flows in a panel names would hide what they name."""


def draw_all(
    families: Sequence[Family], runs: Mapping[tuple[str, str, str], Runs], folder: Path
) -> list[Path]:
    """Writes an SVG for each cell that has a plot and was run, and returns their paths.

    ``runs``: by family, cell and algorithm. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for family in families:
        for cell in family.cells:
            of = {key[2]: it for key, it in runs.items() if key[:2] == (family.name, cell.name)}
            series = {name: it.series for name, it in of.items() if it.series is not None}
            if not cell.plot or not series:
                continue
            written.append(_save(_over_time(family, cell, series), folder / f"{cell.plot}.svg"))
            times = {name: it.completions_us for name, it in of.items() if it.completions_us}
            if times:
                path = folder / f"{cell.plot}-completions.svg"
                written.append(_save(_completions(family, cell, times), path))
    return written


def _over_time(family: Family, cell: Cell, series: Mapping[str, Series]) -> Figure:
    """A row an algorithm; all of a column have one scale.

    A page is some 800 pixels wide: more than three panels side by side cannot be read there.
    """
    figure = _figure(10.0, 1.9 * len(series) + 0.9)
    rows: Any = figure.subplots(
        len(series), 4, sharex=True, sharey="col", squeeze=False, width_ratios=(3, 3, 3, 1.1)
    )
    threshold_kib = cell.net.threshold_bytes / 1024
    for row, (name, one) in zip(rows, series.items(), strict=True):
        windows, queue, goodput, names = row
        _lines(windows, one.at_ms, one.windows)
        _lines(queue, one.at_ms, one.queues_kib)
        _lines(goodput, one.at_ms, one.goodput_gbit)
        queue.axhline(threshold_kib, color="black", linewidth=0.8, linestyle=":")
        goodput.axhline(cell.limit.goodput_gbit, color="black", linewidth=0.8, linestyle=":")
        windows.set_ylabel(name, fontweight="bold")
        _legends(names, windows, queue)
    heads = ("window, packets", "longest queues, KiB", "goodput, Gbit/s")
    for ax, head in zip(rows[0], heads, strict=False):
        ax.set_title(head, fontsize="medium")
        ax.set_ylim(bottom=0)
    for ax in rows[-1][:3]:
        ax.set_xlabel("ms")
    # What has waited for a lost segment comes at once, and is no rate.
    rows[0][2].set_ylim(top=min(rows[0][2].get_ylim()[1], 1.15 * cell.net.rate_gbit))
    figure.suptitle(f"{family.name}: {cell.name}", fontsize="medium")
    return figure


def _legends(ax: Any, windows: Any, queue: Any) -> None:
    """Beside the row, where they hide nothing. Queues are not of the same ports everywhere."""
    ax.axis("off")
    beside = {"fontsize": "x-small", "frameon": False, "borderaxespad": 0.0, "alignment": "left"}
    lines, names = windows.get_legend_handles_labels()
    if names:
        title = "jobs, flows"
        first = ax.legend(lines, names, title=title, title_fontsize="x-small", loc="upper left",
                          bbox_to_anchor=(0, 1), **beside)  # fmt: skip
        ax.add_artist(first)
    lines, names = queue.get_legend_handles_labels()
    if names:
        ax.legend(lines, names, title="queue", title_fontsize="x-small", loc="lower left",
                  bbox_to_anchor=(0, 0), **beside)  # fmt: skip


def _completions(family: Family, cell: Cell, times_us: Mapping[str, Sequence[float]]) -> Figure:
    """Shares of flows that took no longer, by algorithm."""
    figure = _figure(7.4, 4.0)
    ax = figure.subplots()
    for name, times in times_us.items():
        ordered = sorted(times)
        shares = [(number + 1) / len(ordered) for number in range(len(ordered))]
        ax.step(ordered, shares, where="post", label=name, linewidth=1.2)
    ax.set_xscale("log")
    ax.set_xlabel("completion time of flows below 100 kB, us")
    ax.set_ylabel("share of flows")
    ax.set_ylim(0, 1.01)
    ax.axhline(0.99, color="black", linewidth=0.8, linestyle=":")
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    figure.suptitle(f"{family.name}: {cell.name}", fontsize="medium")
    return figure


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _lines(ax: Any, at_ms: Sequence[float], series: Mapping[str, Sequence[float]]) -> None:
    for name, values in list(series.items())[:_MOST_LINES]:
        ax.plot(at_ms, values, label=name, linewidth=0.9)
    ax.grid(alpha=0.3)


def _save(figure: Figure, path: Path) -> Path:
    """The same figure gives the same bytes: no date, no random names."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "ina", "path.simplify_threshold": 0.5}):
        figure.savefig(path, metadata={"Date": None})
    return path
