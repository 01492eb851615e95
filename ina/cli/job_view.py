"""How jobs, their members and who is missing are shown to people."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ina.cli.fitting import FittingTable
from ina.cli.output import table
from ina.protocol.addresses import is_shm_address, place_of
from ina.rpc import controller_pb2 as pb2
from ina.units import time_text

JOB_COLUMNS = (
    "name", "tenant", "priority", "state", "job", "epoch", "joined", "slots", "window",
)  # fmt: skip
_SPARE_JOB_COLUMNS = ("epoch", "window", "job", "priority", "slots", "tenant")
_MEMBER_COLUMNS = (
    "rank", "address", "process", "lease left", "watching", "operations", "in flight", "silent",
    "lost", "spurious", "probes",
)  # fmt: skip
_SPARE_MEMBER_COLUMNS = (
    "watching", "spurious", "probes", "lost", "in flight", "lease left", "address",
)  # fmt: skip


def jobs_table(jobs: Iterable[pb2.Job], now_s: float | None = None) -> FittingTable:
    """A line a job, and below a line for each that waits: for whom, and why.

    ``now_s``: Unix time, for how long it has stood still.
    """
    jobs, now_s = list(jobs), now_s or time.time()
    notes = [f"{job.name}: {why}" for job in jobs if (why := _why_it_waits(job, now_s))]
    rows = [_job_row(job) for job in jobs]
    return FittingTable(JOB_COLUMNS, rows, _SPARE_JOB_COLUMNS, notes=["", *notes] if notes else ())


def _job_row(job: pb2.Job) -> list[object]:
    return [
        job.name, job.tenant, job.priority, job.state, job.job, job.epoch,
        f"{len(job.joined)}/{job.world_size}", slot_range(job), job.window,
    ]  # fmt: skip


def _why_it_waits(job: pb2.Job, now_s: float) -> str:
    if job.HasField("stall"):
        return stall_text(job, (), now_s)
    if job.state != "joining":
        return ""
    missing = [rank for rank in range(job.world_size) if rank not in job.joined]
    return f"waits for {ranks_text(missing)} to join"


def slot_range(job: pb2.Job) -> str:
    """``512..1023``: physical slots."""
    return f"{job.first_slot}..{job.first_slot + job.slots - 1}" if job.slots else ""


def stall_text(job: pb2.Job, members: Sequence[pb2.Member], now_s: float) -> str:
    """Who is missing: slot, sequence number, absent ranks and since when."""
    stall = job.stall
    where = f"slot {stall.slot}, sequence number {stall.seq}"
    since = f"for {time_text(round(max(0.0, now_s - stall.since_unix_s)))}"
    if stall.missing:
        have = "has" if len(stall.missing) == 1 else "have"
        who = f"{ranks_text(stall.missing, members)} {have} not sent it"
    else:
        who = "all have sent it: packets are lost between the switch and the workers"
    waiting = f" ({ranks_text(stall.waiting)} waiting)" if stall.waiting else ""
    return f"{who}: {where}, {since}{waiting}"


def ranks_text(ranks: Iterable[int], members: Sequence[pb2.Member] = ()) -> str:
    """``rank 2 (10.0.0.3:4433)`` or ``ranks 0, 1``."""
    where = {member.rank: f" ({_place(member)})" for member in members}
    named = [f"{rank}{where.get(rank, '')}" for rank in sorted(ranks)]
    if not named:
        return "no rank"
    return f"rank{'s' if len(named) > 1 else ''} {', '.join(named)}"


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


def job_view(shown: pb2.ShowJobReply, now_s: float | None = None) -> RenderableType:
    """Everything about one job."""
    now = now_s or time.time()
    job = shown.job
    if job.state == "ended":
        return Group(f"job {job.name} has ended", Text(_history(shown)))
    parts: list[RenderableType] = []
    if job.HasField("stall"):
        stalled = f"stalled: {stall_text(job, shown.members, now)}"
        parts.append(FittingTable(JOB_COLUMNS, [_job_row(job)], _SPARE_JOB_COLUMNS))
        parts.append(Text(stalled, overflow="fold"))
    else:
        parts.append(jobs_table([job], now))
    rows = [_member_row(member) for member in shown.members]
    parts.append(FittingTable(_MEMBER_COLUMNS, rows, _SPARE_MEMBER_COLUMNS, title="members"))
    if shown.counters:
        rows = [[c.name, c.label, c.packets, c.bytes] for c in shown.counters]
        parts.append(table(["counter", "of", "packets", "bytes"], rows, title="on the switch"))
    if shown.history:
        parts.append(Text(_history(shown)))
    return Group(*_spaced(parts))


def _history(shown: pb2.ShowJobReply) -> str:
    return "\n".join(["last events", *map(event_line, shown.history)])


def _member_row(member: pb2.Member) -> list[object]:
    progress = member.progress
    if not member.HasField("progress"):
        reported: list[object] = [""] * 6
    else:
        reported = [
            f"{progress.operations_done}/{progress.operations_submitted}",
            progress.in_flight,
            time_text(progress.silent_s) + (", refused" if progress.switch_refuses else ""),
            progress.losses,
            progress.spurious_resends,
            progress.probes,
        ]
    return [
        member.rank,
        _address(member),
        member.process,
        time_text(max(0.0, member.lease_left_s)),
        "yes" if member.watching else "no",
        *reported,
    ]


def _place(member: pb2.Member) -> str:
    return place_of(member.host, member.udp_port, member.process)


def _address(member: pb2.Member) -> str:
    if member.process and is_shm_address(member.host):
        return "shared memory"
    return f"{member.host}:{member.udp_port}"


def _spaced(parts: Sequence[RenderableType]) -> list[RenderableType]:
    """With an empty line between two parts."""
    return [item for part in parts for item in (Text(""), part)][1:]
