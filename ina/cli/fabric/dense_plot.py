"""A large fabric as a picture: rows of small boxes, links coloured by load, one job's trees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ina.cli.fabric.view import rows_of
from ina.rpc import controller_pb2 as pb2

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_SWITCHES = 14
"""Of more, :func:`ina.cli.fabric.plot.draw` would have boxes too small for what stands in them."""
_STEP, _BOX, _LAYER = 1.0, 0.86, 4.5
"""Between boxes of the longest row, and of a box; between rows."""
_TREES = ("#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#e6ab02", "#a6761d", "#1f78b4")

_Places = Mapping[str, tuple[float, float]]


def draw_dense(shown: pb2.ShowFabricReply, path: Path, job: str = "") -> None:
    """Writes the figure. ``job``: whose trees are drawn over the links. Raises OSError."""
    import matplotlib
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    places = rows(shown)
    xs, ys = zip(*places.values(), strict=True)
    width, height = max(xs) - min(xs) + 2, max(ys) - min(ys) + 3
    figure = Figure(figsize=(min(max(0.55 * width, 8.0), 40.0), min(height, 16.0)),
                    layout="constrained")  # fmt: skip
    axes: Axes = figure.subplots()
    axes.set_xlim(min(xs) - 1, max(xs) + 1)
    axes.set_ylim(min(ys) - 1.6, max(ys) + 1.2)
    axes.axis("off")
    # Beside a job's trees, in colours, loads are grey.
    colours: Any = matplotlib.colormaps["Greys" if job else "YlOrRd"]
    step_s = shown.load.step_s
    for link in shown.links:
        (x, y), (to_x, to_y) = places[link.switch_a], places[link.switch_b]
        busy = link.busy_s / step_s if step_s else 0.0
        colour = "#dddddd" if not busy else colours(0.15 + (0.5 if job else 0.85) * busy)
        style = ":" if link.down else "-"
        axes.plot([x, to_x], [y, to_y], style, color="black" if link.down else colour,
                  linewidth=0.6 + 1.8 * busy, zorder=1)  # fmt: skip
    _draw_trees(axes, shown, places, job)
    for switch in shown.switches:
        _draw_box(axes, shown, switch, places[switch.name])
    if step_s:
        bar = ScalarMappable(Normalize(0, 1), colours)
        figure.colorbar(bar, ax=axes, shrink=0.5, label="of a modelled step of all jobs")
    axes.set_title(_title(shown, job), fontsize=10)
    figure.savefig(path, dpi=130)


def rows(shown: pb2.ShowFabricReply) -> dict[str, tuple[float, float]]:
    """Switches with hosts below, others above by how far they are from those; evenly spread, in the
    file's order, which has pods together."""
    by_level = rows_of(shown)
    longest = max(map(len, by_level.values())) * _STEP
    return {
        name: (longest * (index + 0.5) / len(names), _LAYER * depth)
        for depth, names in by_level.items()
        for index, name in enumerate(names)
    }


def _draw_trees(axes: Axes, shown: pb2.ShowFabricReply, places: _Places, job: str) -> None:
    """A colour a tree, each a little aside from the cable and from the others."""
    for it in shown.jobs:
        if it.name != job:
            continue
        trees = sorted({node.tree for node in it.nodes})
        for node in it.nodes:
            if not node.parent or node.switch not in places or node.parent not in places:
                continue
            number = trees.index(node.tree)
            aside = 0.09 * (number - (len(trees) - 1) / 2)
            (x, y), (to_x, to_y) = places[node.switch], places[node.parent]
            axes.plot([x + aside, to_x + aside], [y, to_y], linewidth=1.6, zorder=2,
                      color=_TREES[number % len(_TREES)])  # fmt: skip


def _draw_box(
    axes: Axes, shown: pb2.ShowFabricReply, switch: pb2.FabricSwitch, place: tuple[float, float]
) -> None:
    from matplotlib.patches import Rectangle

    x, y = place
    sums = sum(any(node.switch == switch.name for node in job.nodes) for job in shown.jobs)
    lost = bool(switch.unreachable) or switch.down
    axes.add_patch(
        Rectangle((x - _BOX / 2, y - 0.42), _BOX, 0.84, zorder=3, linewidth=0.8,
                  facecolor="#fbe3e0" if lost else "#eef4ea" if sums else "white",
                  edgecolor="#b03a2e" if lost else "#333333")
    )  # fmt: skip
    axes.text(x, y + 0.12, switch.name, fontsize=6, ha="center", va="center", zorder=4)
    used = switch.slots_used / switch.slots_total if switch.slots_total else 0.0
    said = "down" if lost else f"{sums} job{'s' * (sums != 1)}, {used:.0%}"
    axes.text(x, y - 0.2, said, fontsize=4.5, ha="center", va="center", color="#555555", zorder=4)
    hosts = sum(host.switch == switch.name for host in shown.hosts)
    if hosts:
        axes.text(x, y - 0.75, f"{hosts} hosts", fontsize=5, ha="center", va="top")


def _title(shown: pb2.ShowFabricReply, job: str) -> str:
    counts = f"{len(shown.switches)} switches, {len(shown.hosts)} hosts, {len(shown.jobs)} jobs"
    parts = [counts]
    if shown.load.step_s:
        over = shown.load.step_s / shown.load.bound_s if shown.load.bound_s else 1.0
        parts.append(f"slowest {shown.load.limit}, {over:.2f} times the bound")
    if job:
        parts.append(f"trees of {job} in colours")
    return "; ".join(parts)
