"""Bytes by the size of the cache, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ina.embed.plan import PlanOrder, TracePlan
from ina.units import size_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_TICKS = 8


def draw(found: TracePlan, order: PlanOrder, path: Path) -> None:
    """Write it. Raises OSError."""
    figure_of(found, order).savefig(path, dpi=120)


def figure_of(found: TracePlan, order: PlanOrder) -> Figure:
    """What :func:`draw` writes. Up to the smallest cache the x axis is linear, for it has 0."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    figure = Figure(figsize=(6.5, 4.4), layout="constrained")
    ax = figure.subplots()
    rooms = [one.cache_bytes for one in found.inference]
    for label, shares in (
        ("as it is (CLOCK)", [one.share for one in found.inference]),
        ("rows that were asked for most", [one.share_counted for one in found.inference]),
    ):
        style = "o-" if label.startswith("as") else "s--"
        ax.plot(rooms, [found.all_to_all_bytes * share for share in shares], style, label=label)
    ax.axhline(found.all_to_all_bytes, color="#969696", linewidth=1, label="all_to_all of sums")
    least = min((room for room in rooms if room), default=1)
    ax.set_xscale("symlog", linthresh=least)
    ax.xaxis.set_major_locator(FixedLocator(rooms[:: -(-len(rooms) // _MOST_TICKS)]))
    ax.xaxis.set_minor_locator(NullLocator())
    text = FuncFormatter(lambda value, _: size_text(value))
    ax.xaxis.set_major_formatter(text)
    ax.yaxis.set_major_formatter(text)
    ax.set_ylim(bottom=0)
    ax.set(
        title=f"Inference, {order.hosts} hosts, {order.samples} samples each a step",
        xlabel="cache of a host",
        ylabel="received by a host in a step",
    )
    ax.grid(alpha=0.3)
    ax.legend()
    return figure
