"""``ina switch show``: what is on the switch, by job."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType

from ina.cli.common.output import TableOrLines, emit, table
from ina.cli.common.rpc_client import ask, ask_about_itself, plain
from ina.cli.job.view import slot_range
from ina.controller.config import DEFAULT_NAME
from ina.rpc import controller_pb2 as pb2

_ENTRY_COLUMNS = ["table", "match", "action"]
_COUNTER_COLUMNS = ["counter", "index", "of", "packets", "bytes"]


SwitchName = Annotated[
    str, typer.Option("--name", metavar="NAME", help="Which one, of a controller with several.")
]
AnySwitchName = Annotated[
    str,
    typer.Option(
        "--name", metavar="NAME", help="Which one, of a controller with several; all: each of them."
    ),
]
ALL = "all"


def show_switch(controllers: str, name: str, job: str, json: bool) -> None:
    """Prints what the switch has, read back from it; of ``job`` alone if it is not empty.

    ``name``: the switch's; empty: the controller has one; ``all``: each of them, unless one is
    called so.

    Raises what :func:`~ina.cli.common.rpc_client.ask` raises.
    """
    names = _all_names(controllers) if name == ALL else [name]
    requests = [pb2.ShowSwitchRequest(switch=it) for it in names]
    found = [ask(controllers, lambda operator: operator.ShowSwitch, it) for it in requests]
    listed = ask(controllers, lambda operator: operator.ListJobs, pb2.ListJobsRequest()).jobs
    documents, views = [], []
    for shown in found:
        here = {hold.job for hold in shown.holds}
        jobs = [one for one in listed if one.name in here or one.switch == shown.switch]
        if job:
            jobs = [other for other in jobs if other.name == job]
            _keep(shown, job)
        documents.append(_document(shown, jobs))
        views += ["", _view(shown, jobs, job)]
    emit(documents if name == ALL else documents[0], json, Group(*views[1:]))


def _all_names(controllers: str) -> list[str]:
    """Of the primary's switches; where one is called ``all``, or none is told, that."""
    about = ask_about_itself(controllers)
    names = [] if about is None else [it.name for it in about.switches]
    return [ALL] if ALL in names or not names else names


def remove_foreign(controllers: str, name: str, json: bool) -> None:
    """Removes and prints what ``show_switch`` marks as foreign."""
    request = pb2.RemoveForeignRequest(switch=name)
    removed = ask(controllers, lambda operator: operator.RemoveForeign, request).removed
    human: RenderableType = "nothing is foreign"
    if removed:
        human = Group(f"removed {len(removed)} foreign:", _entries(list(removed)))
    emit([plain(entry) for entry in removed], json, human)


def _keep(shown: pb2.ShowSwitchReply, job: str) -> None:
    entries = [entry for entry in shown.entries if entry.job == job]
    counters = [counter for counter in shown.counters if counter.job == job]
    del shown.entries[:], shown.counters[:]
    shown.entries.extend(entries)
    shown.counters.extend(counters)


def _document(shown: pb2.ShowSwitchReply, jobs: list[pb2.Job]) -> dict[str, Any]:
    document = plain(shown)
    document["jobs"] = [
        {
            "name": job.name,
            "state": job.state,
            "job": job.job,
            "epoch": job.epoch,
            "first_slot": job.first_slot,
            "slots": job.slots,
        }
        for job in jobs
    ]
    return document


def _view(shown: pb2.ShowSwitchReply, jobs: list[pb2.Job], only: str) -> RenderableType:
    called = f"{shown.switch}: " if shown.switch not in ("", DEFAULT_NAME) else ""
    parts: list[RenderableType] = [
        f"{called}{shown.program}; device {shown.device_id}; slots {shown.slots_used} of"
        f" {shown.slots_total} in use"
        + (f", the last {shown.slots_shared} of them shared" if shown.slots_shared else "")
    ]
    holds = {hold.job: hold for hold in shown.holds}
    for job in jobs:
        entries = [entry for entry in shown.entries if entry.job == job.name]
        counters = [counter for counter in shown.counters if counter.job == job.name]
        slots = _slots_text(holds.get(job.name), job)
        parts.append(f"job {job.name}: {job.state}, number {job.job}, epoch {job.epoch}, {slots}")
        parts += [_entries(entries)] if entries else []
        parts += [_counters(counters)] if counters else []
    if only:
        return Group(*parts) if jobs else Group(*parts, f"no job is called {only}")
    named = {job.name for job in jobs}
    others = [entry for entry in shown.entries if entry.job not in named]
    foreign = [entry for entry in others if entry.foreign]
    nobodys = [entry for entry in others if not entry.foreign]
    if nobodys:
        parts += ["entries of no job", _entries(nobodys)]
    if foreign:
        parts += [
            "foreign entries, which the controller did not write"
            " (ina switch remove-foreign removes them)",
            _entries(foreign),
        ]
    rest = [counter for counter in shown.counters if counter.job not in named]
    parts += ["counters of no job", _counters(rest)] if rest else []
    return Group(*parts)


def _slots_text(hold: pb2.SlotHold | None, job: pb2.Job) -> str:
    """What it has here; where it holds nothing here, what it has in all."""
    if hold is None:
        return f"slots {slot_range(job)}"
    if not hold.slots:
        return "may claim no slot"
    slots = f"slots {hold.first_slot}..{hold.first_slot + hold.slots - 1}"
    return f"may claim {slots}" if hold.shared else slots


def _entries(entries: list[pb2.TableEntry]) -> RenderableType:
    rows = [[entry.table, entry.match, entry.action] for entry in entries]
    return TableOrLines(_ENTRY_COLUMNS, rows)


def _counters(counters: list[pb2.Counter]) -> RenderableType:
    rows = [[c.name, c.index, c.label, c.packets, c.bytes] for c in counters]
    return table(_COUNTER_COLUMNS, rows)
