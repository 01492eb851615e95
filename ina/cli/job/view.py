"""How jobs, their members and who is missing are shown to people."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ina.cli.common.columns import Column, view
from ina.cli.common.output import FittingTable, table
from ina.cli.common.trees import (
    COUNT_COLUMNS,
    SHARED_COLUMNS,
    beside_the_network,
    counts,
    indented,
    ranks_of,
    shared_counts,
    summed_where,
)
from ina.cli.job.windows import windows_view
from ina.doctor.job_verdict import Known, judge, ranks_text, switch_of
from ina.protocol.addresses import is_shm_address
from ina.rpc import controller_pb2 as pb2
from ina.units import time_text

_NODE_COLUMNS = ["switch", "ranks", "slots", *COUNT_COLUMNS]


def jobs_table(
    jobs: Iterable[pb2.Job],
    now_s: float | None = None,
    controller: pb2.ShowControllerReply | None = None,
) -> FittingTable:
    """A line a job, and below a line for each that waits: for whom, and why.

    ``now_s``: Unix time, for how long it has stood still. ``controller``: what it says of itself,
    if that is known; where it has several switches, there is a column for them.
    """
    jobs, now_s = list(jobs), now_s or time.time()
    about = controller or pb2.ShowControllerReply()
    known = [Known(job, switch_state=switch_of(job, about).state) for job in jobs]
    notes = [f"{of.job.name}: {why}" for of in known if (why := _note(of, now_s))]
    return _table_of(jobs, about, ["", *notes] if notes else ())


def _table_of(
    jobs: Sequence[pb2.Job], about: pb2.ShowControllerReply, notes: Sequence[str] = ()
) -> FittingTable:
    columns = JOB_COLUMNS if len(about.switches) < 2 else (*JOB_COLUMNS, Column("switch"))
    return view(columns, jobs, _SPARE_JOB_COLUMNS, notes=notes)


def _lost(job: pb2.Job) -> str:
    losses, sent = job.traffic.losses, job.traffic.packets_sent
    return f"{losses} ({losses / sent:.1%})" if losses else "0"


def _sent_again(title: str, of: Callable[[pb2.Job], object]) -> Column:
    """What became of packets sent again; an empty cell: no worker has reported."""
    return Column(title, lambda job: of(job) if job.traffic.packets_sent else "")


def _note(known: Known, now_s: float) -> str:
    """What is worth a line below the job's; empty: nothing."""
    verdict = judge(known, now_s)
    return "" if verdict.ok and not known.switch_trouble else verdict.found


def slot_range(job: pb2.Job) -> str:
    """``512..1023``: physical slots."""
    return f"{job.first_slot}..{job.first_slot + job.slots - 1}" if job.slots else ""


JOB_COLUMNS = (
    *(Column("name"), Column("tenant"), Column("priority"), Column("state"), Column("job")),
    *(Column("epoch"), Column("joined", lambda job: f"{len(job.joined)}/{job.world_size}")),
    *(Column("slots", slot_range), Column("window"), _sent_again("lost", _lost)),
    _sent_again("spurious", lambda job: job.traffic.spurious_resends),
    _sent_again("probes", lambda job: job.traffic.probes),
)
_SPARE_JOB_COLUMNS = (
    "spurious", "probes", "epoch", "window", "job", "lost", "priority", "slots", "tenant",
)  # fmt: skip


def change_text(change: pb2.Remapping, job: pb2.Job) -> str:
    """A change under way, and whom it waits for."""
    first, last = change.first_slot, change.first_slot + change.slots - 1
    mode = "" if change.mode in ("", job.mode) else f"mode {change.mode}, "
    text = f"{mode}{change.slots} slots ({first}..{last}), window {job.window} -> {change.window}"
    if change.in_place:
        text += ", in place"
    if change.first_operation:
        text += f", from operation {change.first_operation} on"
    waits = f", waits for {ranks_text(change.waits_for)}" if change.waits_for else ""
    return f"{text}: {change.stage}{waits}"


def event_line(event: pb2.JobEvent) -> str:
    """One line for one event, beginning with the local time."""
    at = time.strftime("%H:%M:%S", time.localtime(event.unix_s))
    try:
        kind = pb2.EventKind.Name(event.kind)
    except ValueError:  # a newer controller's
        kind = f"EVENT_{event.kind}"
    who = [ranks_text(event.ranks)] if event.ranks else []
    end = ["(fatal)"] if event.fatal else []
    return "  ".join([at, event.name or "*", kind, *who, *filter(None, [event.reason]), *end])


def job_view(
    shown: pb2.ShowJobReply,
    now_s: float | None = None,
    controller: pb2.ShowControllerReply | None = None,
) -> RenderableType:
    """Everything about one job. ``controller``: what it says of itself, if that is known."""
    now = now_s or time.time()
    job = shown.job
    if job.state == "ended":
        return Group(f"job {job.name} has ended", Text(_history(shown)))
    parts: list[RenderableType] = []
    parts.append(_table_of([job], controller or pb2.ShowControllerReply()))
    known = known_of(shown, controller)
    verdict = judge(known, now)
    if not verdict.ok or known.switch_trouble:
        stalled = "stalled: " if job.HasField("stall") else ""
        advice = f"\n-> {verdict.advice}" if verdict.advice else ""
        parts.append(Text(f"{stalled}{verdict.found}{advice}", overflow="fold"))
    if job.HasField("remapping"):
        what = f"changes to {change_text(job.remapping, job)} ({job.remapping.why})"
        parts.append(Text(what, overflow="fold"))
    if text := beside_the_network(job):
        parts.append(Text(text, overflow="fold"))
    parts.append(view(_MEMBER_COLUMNS, shown.members, _SPARE_MEMBER_COLUMNS, title="members"))
    parts += windows_view(shown)
    if len(shown.tree) > 1:
        of_nodes = [_node_row(name, node) for name, node in indented(shown.tree)]
        columns = _NODE_COLUMNS
        if any(node.shared for node in shown.tree):
            columns = [*columns, *SHARED_COLUMNS]
            of_shared = (shared_counts(node) for _, node in indented(shown.tree))
            of_nodes = [[*row, *more] for row, more in zip(of_nodes, of_shared, strict=True)]
        parts.append(table(columns, of_nodes, title="switches"))
        if text := summed_where(shown.tree):
            parts.append(Text(text, overflow="fold"))
        parts += [f"{it.switch}: no counters: {it.unread}" for it in shown.tree if it.unread]
    elif shown.counters:
        rows = [[c.name, c.label, c.packets, c.bytes] for c in shown.counters]
        parts.append(table(["counter", "of", "packets", "bytes"], rows, title="on the switch"))
    if shown.history:
        parts.append(Text(_history(shown)))
    return Group(*_spaced(parts))


def known_of(shown: pb2.ShowJobReply, controller: pb2.ShowControllerReply | None = None) -> Known:
    """What is known of a job, put together."""
    switch = switch_of(shown.job, controller or pb2.ShowControllerReply())
    return Known(shown.job, shown.members, shown.history, switch.address, switch.state)


def _node_row(name: str, node: pb2.TreeNode) -> list[object]:
    slots = f"{node.first_slot}..{node.first_slot + node.slots - 1}" if node.slots else "none"
    slots += " shared" if node.shared else ""
    return [name, ranks_of(node), slots, *counts(node)]


def _history(shown: pb2.ShowJobReply) -> str:
    return "\n".join(["last events", *map(event_line, shown.history)])


def _address(member: pb2.Member) -> str:
    if member.process and is_shm_address(member.host):
        return "shared memory"
    return f"{member.host}:{member.udp_port}"


def _reported(title: str, of: Callable[[pb2.Progress], object]) -> Column:
    """An empty cell: it has not told."""
    return Column(title, lambda it: of(it.progress) if it.HasField("progress") else "")


def _silent(progress: pb2.Progress) -> str:
    return time_text(progress.silent_s) + (", refused" if progress.switch_refuses else "")


_MEMBER_COLUMNS = (
    *(Column("rank"), Column("address", _address), Column("process")),
    Column("lease left", lambda it: time_text(max(0.0, it.lease_left_s))),
    Column("watching", lambda it: "yes" if it.watching else "no"),
    _reported("operations", lambda it: f"{it.operations_done}/{it.operations_submitted}"),
    *(_reported("in flight", lambda it: it.in_flight), _reported("silent", _silent)),
    _reported("lost", lambda it: it.losses),
    _reported("spurious", lambda it: it.spurious_resends),
    _reported("probes", lambda it: it.probes),
)
_SPARE_MEMBER_COLUMNS = (
    "watching", "spurious", "probes", "lost", "in flight", "lease left", "address",
)  # fmt: skip


def _spaced(parts: Sequence[RenderableType]) -> list[RenderableType]:
    """With an empty line between two parts."""
    return [item for part in parts for item in (Text(""), part)][1:]
