"""``ina job watch``: what happens to jobs, as it happens, and who is missing."""

from __future__ import annotations

import sys
import time
from typing import Any, Protocol

import msgspec
from rich.console import Console, RenderableType
from rich.live import Live

from ina.cli.common.output import console
from ina.cli.common.rpc_client import plain
from ina.cli.job.follow import Jobs, follow
from ina.cli.job.view import event_line, jobs_table
from ina.doctor.job_verdict import Known, judge, switch_trouble
from ina.errors import InaError
from ina.rpc import controller_pb2 as pb2


class View(Protocol):
    """Where what was seen is shown."""

    def event(self, event: pb2.JobEvent) -> None:
        """Something happened."""

    def jobs(self, now: Jobs) -> None:
        """The jobs as they are now; comes every second."""

    def trouble(self, error: InaError) -> None:
        """The controller is away, for a reason that was not said yet."""

    def back(self) -> None:
        """It answers again."""


def watch(controllers: str, name: str, *, for_s: float, json: bool) -> None:
    """Shows what :func:`follow` yields until the named job ends, or for ``for_s`` (0: no end)."""
    end_s = time.monotonic() + for_s if for_s else None
    out = console()
    if not json and out.is_terminal:
        with Live(console=out, auto_refresh=False) as live:
            _show(controllers, name, end_s, _Terminal(live))
    else:
        _show(controllers, name, end_s, _Json() if json else _Lines(out))


def _show(controllers: str, name: str, end_s: float | None, view: View) -> None:
    away = ""  # why, as said last
    for seen in follow(controllers, name):
        if isinstance(seen, InaError):
            if str(seen) != away:
                view.trouble(seen)
            away = str(seen)
        elif away:
            away = ""
            view.back()
        if isinstance(seen, pb2.JobEvent):
            view.event(seen)
            if name and seen.name == name and seen.kind == pb2.JOB_ENDED:
                view.jobs(Jobs([], pb2.ShowControllerReply()))
                return
        elif not isinstance(seen, InaError):
            view.jobs(seen)
        if end_s is not None and time.monotonic() >= end_s:
            return


class _Changes:
    """Which jobs stand still, or wait for others, since the last look."""

    def __init__(self) -> None:
        self._stalls: dict[str, tuple[int, tuple[int, ...], bool]] = {}

    def stalls(self, now: Jobs) -> list[pb2.Job]:
        """Jobs whose stall is new or has changed, or has another cause now."""
        stalls = {
            job.name: (
                job.stall.seq,
                tuple(job.stall.missing),
                bool(switch_trouble(now.switch_state(job))),
            )
            for job in now.jobs
            if job.HasField("stall")
        }
        changed = [job for job in now.jobs if stalls.get(job.name) != self._stalls.get(job.name)]
        self._stalls = stalls
        return [job for job in changed if job.name in stalls]


def _table(now: Jobs) -> RenderableType:
    return jobs_table(now.jobs, controller=now.controller) if now.jobs else "no jobs"


class _Lines:
    """A line an event; another when who is missing changes."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._changes = _Changes()
        self._first = True

    def event(self, event: pb2.JobEvent) -> None:
        self._out.print(event_line(event))

    def jobs(self, now: Jobs) -> None:
        if self._first:
            self._out.print(_table(now))
            self._first = False
        for job in self._changes.stalls(now):
            now_s = time.time()
            at = time.strftime("%H:%M:%S", time.localtime(now_s))
            verdict = judge(Known(job, switch_state=now.switch_state(job)), now_s)
            self._out.print(f"{at}  {job.name}  stalled: {verdict.found}")

    def trouble(self, error: InaError) -> None:
        print(f"trying again: {error}", file=sys.stderr)

    def back(self) -> None:
        print("the controller is back", file=sys.stderr)


class _Terminal(_Lines):
    """Events scroll above a table of the jobs that is kept up to date."""

    def __init__(self, live: Live) -> None:
        super().__init__(live.console)
        self._live = live

    def jobs(self, now: Jobs) -> None:
        self._live.update(_table(now), refresh=True)

    def trouble(self, error: InaError) -> None:
        self._live.update(f"trying again: {error}", refresh=True)

    def back(self) -> None:
        """The table is there again."""


class _Json:
    """A document a line: ``{"event": ...}``, ``{"stall": ...}``, ``{"away": "..."}``,
    ``{"back": true}``."""

    def __init__(self) -> None:
        self._changes = _Changes()
        self._first = True

    def event(self, event: pb2.JobEvent) -> None:
        self._put({"event": plain(event)})

    def jobs(self, now: Jobs) -> None:
        if self._first:
            self._put({"jobs": [plain(job) for job in now.jobs]})
            self._first = False
        for job in self._changes.stalls(now):
            self._put({"stall": {"name": job.name, **plain(job.stall)}})

    def trouble(self, error: InaError) -> None:
        self._put({"away": str(error)})

    def back(self) -> None:
        self._put({"back": True})

    def _put(self, document: dict[str, Any]) -> None:
        sys.stdout.write(msgspec.json.encode(document).decode() + "\n")
        sys.stdout.flush()
