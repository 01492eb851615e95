"""A fabric as tables, and trees of jobs with their switches below each other."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType

from ina.cli.common.output import table
from ina.cli.common.trees import COUNT_COLUMNS, beside_the_network, counts, indented, ranks_of
from ina.rpc import controller_pb2 as pb2
from ina.units import time_text

_NODE_COLUMNS = ["switch", "workers", *COUNT_COLUMNS]
_LINK_COLUMNS = ["link", "ports", "rate", "now", "of a modelled step", "state"]


def view(shown: pb2.ShowFabricReply) -> Group:
    """For people."""
    parts: list[RenderableType] = [
        table(
            ["switch", "kind", "address", "slots", "hosts", "links"],
            [_switch_row(switch, shown) for switch in shown.switches],
        )
    ]
    parts += [
        f"{switch.name}: out of reach: {switch.unreachable}"
        for switch in shown.switches
        if switch.unreachable
    ]
    if shown.links:
        parts.append(table(_LINK_COLUMNS, _link_rows(shown)))
    if shown.HasField("load"):
        parts.append(_load_line(shown.load))
    for job in shown.jobs:
        parts.append(f"\njob {job.name} ({job.state}, {job.world_size} workers)")
        parts += filter(None, [beside_the_network(job)])
        if job.nodes:
            rows = [[it, ranks_of(node), *counts(node)] for it, node in indented(job.nodes)]
            parts.append(table(_NODE_COLUMNS, rows))
        else:
            parts.append("not placed: some of its workers have not joined")
    if not shown.jobs:
        parts.append("\nno jobs")
    return Group(*parts)


def _link_rows(shown: pb2.ShowFabricReply) -> Iterator[list[str]]:
    """``now``: jobs' packets, in the direction that has more. ``of a modelled step``: which all
    jobs begin at once, and which is as long as its slowest link takes."""
    for link in shown.links:
        rate = f"{link.rate_gbit:g} Gbit/s" if link.rate_gbit else "-"
        step_s = shown.load.step_s
        busy = f"{link.busy_s / step_s:.0%}" if step_s else "-"
        now = f"{max(link.bits_per_s, link.back_bits_per_s) / 1e9:.3g} Gbit/s"
        name = f"{link.switch_a}-{link.switch_b}"
        state = "down" if link.down else "up"
        yield [name, f"{link.port_a}-{link.port_b}", rate, now, busy, state]


def _load_line(load: pb2.FabricLoad) -> str:
    """What steps take by the links, and what they would take at best."""
    over = load.step_s / load.bound_s if load.bound_s else 1.0
    return (
        f"a modelled step of all jobs takes {time_text(load.step_s)}, by {load.limit};"
        f" {over:.2f} times the bound, {time_text(load.bound_s)}, by {load.bound}"
    )


def _switch_row(switch: pb2.FabricSwitch, shown: pb2.ShowFabricReply) -> list[str]:
    links = [f"{port}: {other}" for port, other in links_of(switch.name, shown)]
    hosts = sum(host.switch == switch.name for host in shown.hosts)
    slots = "down" if switch.down else f"{switch.slots_used} of {switch.slots_total}"
    return [
        switch.name,
        switch.target,
        switch.data_addr,
        slots,
        str(hosts),
        ", ".join(links) or "-",
    ]


def links_of(switch: str, shown: pb2.ShowFabricReply) -> Iterator[tuple[str, str]]:
    """Port and the switch at the other end, link by link."""
    for link in shown.links:
        if link.switch_a == switch:
            yield link.port_a, link.switch_b
        if link.switch_b == switch:
            yield link.port_b, link.switch_a


def rows_of(shown: pb2.ShowFabricReply) -> dict[int, list[str]]:
    """Switches by how far they are from those with hosts, these at 0; in the file's order. What
    nothing joins to hosts is at 0, too."""
    level = {host.switch: 0 for host in shown.hosts} or {it.name: 0 for it in shown.switches}
    frontier = list(level)
    while frontier:
        found = []
        for name in frontier:
            for _, other in links_of(name, shown):
                if other not in level:
                    level[other] = level[name] + 1
                    found.append(other)
        frontier = found
    rows: dict[int, list[str]] = {}
    for switch in shown.switches:
        rows.setdefault(level.get(switch.name, 0), []).append(switch.name)
    return rows
