"""The fabric as a picture: switches in layers above their hosts, trees of jobs in colour."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ina.cli.common.trees import ranks_of
from ina.cli.fabric.view import links_of, rows_of
from ina.rpc import controller_pb2 as pb2

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BOX_WIDTH, _LAYER_GAP, _LINE_HEIGHT = 3.0, 1.9, 0.27
_DRAWN_HOSTS = 12
"""A rack of more is drawn as one line of text."""
_COLOURS = (
    *("#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#e6ab02", "#a6761d", "#1f78b4"),
)
"""Of jobs; more than these are counted."""
_INK, _PALE, _PAPER = "#222222", "#9a9a9a", "#f6f6f4"

_Places = Mapping[str, tuple[float, float]]
"""By switch: the middle of its box."""
_Heights = Mapping[str, float]
"""By switch: of its box."""


def draw(shown: pb2.ShowFabricReply, path: Path) -> None:
    """Writes the figure. Raises OSError."""
    from matplotlib.figure import Figure

    jobs = [job for job in shown.jobs if job.nodes][: len(_COLOURS)]
    colours = {job.name: _COLOURS[index] for index, job in enumerate(jobs)}
    said = {switch.name: _lines(switch.name, jobs, colours) for switch in shown.switches}
    heights = {name: 0.75 + _LINE_HEIGHT * len(lines) for name, lines in said.items()}
    places = layout(shown, max(heights.values()))
    xs = [x for x, _ in places.values()]
    ys = [y for _, y in places.values()]
    width = max(max(xs) - min(xs) + _BOX_WIDTH + 0.8, 7.0)
    below, above = (
        max(heights.values()) / 2 + 1.6,
        max(heights.values()) / 2 + 0.3 * len(jobs) + 0.4,
    )
    height = max(ys) - min(ys) + below + above
    figure = Figure(figsize=(min(width, 40.0), min(height, 20.0)), layout="constrained")
    ax = figure.subplots()
    middle = (max(xs) + min(xs)) / 2
    ax.set_xlim(middle - width / 2, middle + width / 2)
    ax.set_ylim(min(ys) - below, max(ys) + above)
    ax.axis("off")
    _draw_links(ax, shown, places)
    for index, job in enumerate(jobs):
        lane = index - (len(jobs) - 1) / 2
        _draw_tree(ax, job, places, colours[job.name], lane, heights)
    for switch in shown.switches:
        lines, box = said[switch.name], heights[switch.name]
        _draw_switch(ax, switch, places[switch.name], lines, box)
        _draw_hosts(ax, switch.name, shown, places[switch.name], box)
    _draw_legend(ax, shown, jobs, colours)
    figure.savefig(path, dpi=130)


def layout(shown: pb2.ShowFabricReply, box_height: float) -> dict[str, tuple[float, float]]:
    """Switches with hosts below, others above by how far they are from those."""
    layer = box_height + _LAYER_GAP
    rows = rows_of(shown)
    xs: dict[str, float] = {}
    step = _BOX_WIDTH + 0.7
    for depth in sorted(rows):
        row = rows[depth]
        below = {
            name: [xs[other] for _, other in links_of(name, shown) if other in xs] for name in row
        }
        wanted = {
            name: sum(near) / len(near) if (near := below[name]) else step * index
            for index, name in enumerate(row)
        }
        row.sort(key=lambda name: wanted[name])
        middle = sum(wanted.values()) / len(row)
        for index, name in enumerate(row):
            xs[name] = middle + step * (index - (len(row) - 1) / 2)
    return {name: (xs[name], layer * depth) for depth, row in rows.items() for name in row}


def _draw_links(ax: Axes, shown: pb2.ShowFabricReply, places: _Places) -> None:
    for link in shown.links:
        (ax_, ay), (bx, by) = places[link.switch_a], places[link.switch_b]
        ax.plot([ax_, bx], [ay, by], color=_PALE, linewidth=1.2, zorder=1)
        for port, (x, y), (to_x, to_y) in (
            (link.port_a, (ax_, ay), (bx, by)),
            (link.port_b, (bx, by), (ax_, ay)),
        ):
            share = 0.33
            ax.text(
                x + share * (to_x - x), y + share * (to_y - y), port, fontsize=7, color="#666666",
                ha="center", va="center", zorder=4,
                bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none"},
            )  # fmt: skip


def _draw_tree(
    ax: Axes, job: pb2.FabricJob, places: _Places, colour: str, lane: float, heights: _Heights
) -> None:
    """An arrow from each node to its parent, beside the cable and the arrows of other jobs."""
    from matplotlib.patches import FancyArrowPatch

    for node in job.nodes:
        if not node.parent or node.switch not in places:  # the root; on a host of workers
            continue
        start = _edge(places[node.switch], heights[node.switch], places[node.parent])
        end = _edge(places[node.parent], heights[node.parent], places[node.switch])
        aside = 0.13 + 0.16 * lane
        ax.add_patch(
            FancyArrowPatch(
                (start[0] + aside, start[1]), (end[0] + aside, end[1]), arrowstyle="-|>",
                mutation_scale=16, shrinkA=0, shrinkB=0, color=colour, linewidth=2.6, zorder=2,
            )
        )  # fmt: skip


def _edge(
    place: tuple[float, float], height: float, towards: tuple[float, float]
) -> tuple[float, float]:
    """Where the way from a box's middle to another point leaves the box."""
    across, up = towards[0] - place[0], towards[1] - place[1]
    share = min(
        _BOX_WIDTH / 2 / abs(across) if across else 1.0,
        height / 2 / abs(up) if up else 1.0,
    )
    return place[0] + share * across, place[1] + share * up


def _lines(
    switch: str, jobs: list[pb2.FabricJob], colours: Mapping[str, str]
) -> list[tuple[str, str]]:
    """What stands in a switch's box about the jobs that it sums."""
    found: list[tuple[str, str]] = []
    for job in jobs:
        for node in job.nodes:
            if node.switch == switch:
                what = f" below {node.parent}" if node.parent else ", root"
                counted = f"{node.results:,} sums of {node.contributions:,}"
                found += [(f"{job.name}{what}", colours[job.name]), (counted, colours[job.name])]
    return found or [("forwards", _PALE)]


def _draw_switch(
    ax: Axes,
    switch: pb2.FabricSwitch,
    place: tuple[float, float],
    lines: list[tuple[str, str]],
    height: float,
) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y = place
    top = y + height / 2
    lost = bool(switch.unreachable)
    ax.add_patch(
        FancyBboxPatch(
            (x - _BOX_WIDTH / 2, y - height / 2), _BOX_WIDTH, height,
            boxstyle="round,pad=0.02,rounding_size=0.12",
            facecolor="#fbe3e0" if lost else _PAPER, edgecolor="#b03a2e" if lost else _INK,
            linewidth=1.2, zorder=3,
        )
    )  # fmt: skip
    ax.text(x, top - 0.2, switch.name, fontsize=11, weight="bold", ha="center", va="center",
            color=_INK, zorder=5)  # fmt: skip
    used = f"{switch.slots_used} of {switch.slots_total} slots"
    ax.text(x, top - 0.47, f"{switch.target}, {'out of reach' if lost else used}", fontsize=7.5,
            ha="center", va="center", color="#b03a2e" if lost else "#555555", zorder=5)  # fmt: skip
    for index, (text, colour) in enumerate(lines):
        ax.text(x, top - 0.75 - _LINE_HEIGHT * index, text, fontsize=8, ha="center", va="center",
                color=colour, zorder=5)  # fmt: skip


def _draw_hosts(
    ax: Axes, switch: str, shown: pb2.ShowFabricReply, place: tuple[float, float], height: float
) -> None:
    x, y = place
    hosts = [host.address for host in shown.hosts if host.switch == switch]
    if not hosts:
        return
    base = y - height / 2 - 0.7
    if len(hosts) > _DRAWN_HOSTS:
        ax.plot([x, x], [y, base + 0.15], color=_PALE, linewidth=1.0, zorder=1)
        ax.text(x, base, f"{len(hosts)} hosts", fontsize=9, ha="center", va="center", color=_INK)
        return
    step = min(_BOX_WIDTH / len(hosts), 0.75)
    for index, address in enumerate(hosts):
        host_x = x + step * (index - (len(hosts) - 1) / 2)
        ax.plot([x, host_x], [y, base], color=_PALE, linewidth=0.8, zorder=1)
        ax.plot([host_x], [base], "s", color=_INK, markersize=5, zorder=3)
        ax.text(host_x, base - 0.12, address, fontsize=6.5, rotation=40, ha="right", va="top",
                rotation_mode="anchor", color="#444444")  # fmt: skip


def _draw_legend(
    ax: Axes,
    shown: pb2.ShowFabricReply,
    jobs: list[pb2.FabricJob],
    colours: Mapping[str, str],
) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=colours[job.name], linewidth=2.6,
               label=f"{job.name}: {job.state}, {job.world_size} workers; "
               + ", ".join(_who(job)))
        for job in jobs
    ]  # fmt: skip
    left = len(shown.jobs) - len(jobs)
    if left:
        handles.append(Line2D([], [], color="none", label=f"{left} more jobs are not drawn"))
    if not handles:
        handles = [Line2D([], [], color="none", label="no jobs")]
    ax.legend(handles=handles, loc="upper left", fontsize=8, frameon=False)


def _who(job: pb2.FabricJob) -> list[str]:
    """Switches with the workers below them; once each, in however many trees they are."""
    return list(dict.fromkeys(f"{it.switch} {ranks_of(it)}" for it in job.nodes if it.ranks))
