"""What ``ina sim`` prints for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from rich.console import Group, RenderableType
from rich.text import Text

from ina.cli.common.columns import Column, view
from ina.cli.common.output import table
from ina.sim.fuzz import CRASH, Finding, State
from ina.sim.ladder import Trace, ladder
from ina.sim.report import JobReport, PortReport, Report, TrafficReport
from ina.units import size_text, time_text

_MOST_PORTS = 12
_MOST_RUNGS = 200


def report_view(report: Report, *, events: bool = False) -> RenderableType:
    """Jobs, ports, what went wrong."""
    parts: list[RenderableType] = [
        f"{report.scenario}, seed {report.seed}: {time_text(report.virtual_s)} of virtual time in"
        f" {time_text(report.wall_s)}, {report.packet_hops} packet hops"
        f" ({report.hops_per_s / 1e6:.2g} M/s), {report.sums_checked} sums checked",
        _jobs(report.jobs),
        *map(Text, _ends(report.jobs)),
        _ports(report.ports),
    ]
    parts += [_traffic(report.traffic)] if report.traffic else []
    if events:
        parts += map(Text, report.events)
    parts += [Text(str(violation)) for violation in report.violations]
    return Group(*parts)


def _ends(jobs: Sequence[JobReport]) -> Iterator[str]:
    """A line for each way in which a job ended, and how often."""
    counts = Counter((job.name, job.cause, job.ended) for job in jobs if job.ended)
    for (name, cause, ended), count in counts.items():
        times = f" {count} times" if count > 1 else ""
        why = f"after {cause}" if cause else "though no fault of the scenario was done to it"
        yield f"job {name} ended{times}, {why}: {ended}"


def _jobs(jobs: Sequence[JobReport]) -> RenderableType:
    return view(_JOB_COLUMNS, [list(same) for same in _alike(jobs)])


def _job(title: str, of: str | Callable[[JobReport], object] = "") -> Column:
    """Of the first of those that are alike."""
    return Column(title, lambda alike: Column(title, of).cell(alike[0]))


def _name(alike: Sequence[JobReport]) -> str:
    times = f" ({len(alike)} times)" if len(alike) > 1 else ""
    return alike[0].name + times


_JOB_COLUMNS = (
    *(Column("job", _name), _job("workers"), _job("steps", "steps_done")),
    _job("step", lambda it: time_text(it.step_mean_s)),
    _job("99 %", lambda it: time_text(it.step_p99_s)),
    _job("Gbit/s", lambda it: f"{it.goodput_gbit_s:.3g}"),
    *(_job("W", "window_packets"), _job("least", "in_flight_limit_min")),
    *(_job("slots", "slots_used_max"), _job("sent", "packets_sent")),
    *(_job("lost", "resends_lost"), _job("overtaken", "resends_overtaken")),
    *(_job("probes", "resends_probes"), _job("marked", "ecn_marked")),
)
_PORT_COLUMNS = (
    *(Column("port", "name"), Column("packets")),
    Column("used", lambda it: f"{100 * it.utilisation:.1f} %"),
    Column("queue", lambda it: size_text(it.longest_queue_bytes)),
    Column("wait", lambda it: time_text(it.mean_wait_s)),
    *(Column("full", "full_packets"), Column("lost", "lost_packets")),
    Column("marked", "marked_packets"),
)


def _alike(jobs: Sequence[JobReport]) -> Iterator[Iterable[JobReport]]:
    """Each incarnation; those that ended in the same way and did nothing, one after the other."""
    key = lambda it: (it.name, it.ended if not it.packets_sent else id(it))  # noqa: E731
    return (same for _, same in groupby(jobs, key))


def _traffic(traffic: Sequence[TrafficReport]) -> RenderableType:
    columns = ("traffic", "sizes", "flows", "mean", "99 %", "slowdown", "99 %", "lost")
    rows: list[tuple[object, ...]] = []
    for one in traffic:
        if one.datagrams_sent:
            lost = one.datagrams_sent - one.datagrams_received
            mean = time_text(one.datagram_mean_s)
            rows.append((one.name, "UDP", one.datagrams_received, mean, "-", "-", "-", lost))
            continue
        mean, most = time_text(one.completion_mean_s), time_text(one.completion_p99_s)
        rows.append((one.name, "all", one.flows_done, mean, most, "-", "-", one.flows_given_up))
        for row in one.slowdowns:
            below = "more" if row.most_bytes is None else f"to {size_text(row.most_bytes)}"
            cells = (f"{row.mean:.3g}", f"{row.p99:.3g}", row.given_up)
            rows.append(("", below, row.flows, "", "", *cells))
    return table(columns, rows)


def _ports(ports: Sequence[PortReport]) -> RenderableType:
    busiest = sorted(ports, key=lambda port: -port.longest_queue_bytes)[:_MOST_PORTS]
    more = len(ports) - len(busiest)
    title = f"ports with the longest queues; {more} more" if more else None
    return view(_PORT_COLUMNS, busiest, title=title)


def fuzz_view(state: State) -> str:
    """One line."""
    rate = state.packet_hops / state.wall_s if state.wall_s else 0.0
    seeds = state.seeds
    each = time_text(state.wall_s / seeds) if seeds else "-"
    return (
        f"{seeds} seeds from {state.first} on: {state.sums} sums checked,"
        f" {state.packet_hops} packet hops, {each} a seed on one core ({rate / 1e6:.2g} M hops/s),"
        f" {len(state.findings)} violations"
    )


def finding_view(finding: Finding, out: Path) -> str:
    """What failed, and how to see it again."""
    if finding.kind == CRASH:
        again = f"again: ina sim replay {finding.seed}"
        return f"seed {finding.seed}: {finding.kind}: {finding.what}\n{again}"
    file = out / f"seed-{finding.seed}.json"
    return (
        f"seed {finding.seed}: {finding.kind}: {finding.what}\n"
        f"again: ina sim replay {finding.seed}; smaller:"
        f" ina sim replay {finding.seed} --file {file} --ladder"
    )


def ladder_view(trace: Trace) -> RenderableType:
    """The newest packets."""
    lines = list(ladder(trace.records(), trace.ports))
    if len(lines) > _MOST_RUNGS + 1:
        left_out = f"... {len(lines) - 1 - _MOST_RUNGS} packets before"
        lines = [lines[0], left_out, *lines[-_MOST_RUNGS:]]
    return Text("\n".join(lines))
