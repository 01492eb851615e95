"""``ina job resize``: asks for other slots, or another mode, and waits until the job has them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from ina.cli.common.rpc_client import RequestRefusedError, ask, plain
from ina.cli.job.view import change_text, slot_range
from ina.rpc import controller_pb2 as pb2

POLL_S = 0.1


@dataclass(frozen=True)
class Resized:
    """What became of it."""

    before: pb2.Job
    now: pb2.Job
    """With the change, where it is still under way."""
    took_s: float

    def document(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "changed": not self.now.HasField("remapping"),
            "took_s": self.took_s,
            "before": plain(self.before),
            "now": plain(self.now),
        }


def resize(controllers: str, name: str, slots: int, mode: str, wait_s: float) -> Resized:
    """Returns when the job has what was asked for, or after ``wait_s``.

    ``slots``, ``mode``: 0 or empty: as it has. Raises :class:`RequestRefusedError`: the controller
    refuses it, the change was called off, or the job has ended meanwhile;
    :class:`UnavailableError`.
    """
    begun_s = time.monotonic()
    before = _show(controllers, name).job
    request = pb2.ResizeJobRequest(name=name, slots=slots, mode=mode)
    job = ask(controllers, lambda operator: operator.ResizeJob, request).job
    wanted = job.remapping.epoch or job.mapping_epoch
    while job.HasField("remapping") and time.monotonic() - begun_s < wait_s:
        time.sleep(POLL_S)
        shown = _show(controllers, name)
        job = shown.job
        if job.state == "ended" or job.epoch != before.epoch:
            raise RequestRefusedError(f"job {name!r} has ended meanwhile")
        if job.remapping.epoch != wanted and job.mapping_epoch != wanted:
            raise RequestRefusedError(f"job {name!r} stays as it is: {_why_off(shown)}")
    return Resized(before, job, time.monotonic() - begun_s)


def resize_line(done: Resized) -> str:
    """``resized j: 512 -> 1024 slots (1024..2047), window 256 -> 512, ...``."""
    before, now = done.before, done.now
    if not now.HasField("remapping"):
        modes = "" if before.mode == now.mode else f"mode {before.mode} -> {now.mode}, "
        return (
            f"resized {now.name}: {modes}{before.slots} -> {now.slots} slots ({slot_range(now)}),"
            f" window {before.window} -> {now.window}, in {done.took_s:.1f} s"
        )
    return f"resizing {now.name}: {before.slots} -> {change_text(now.remapping, before)}"


def _show(controllers: str, name: str) -> pb2.ShowJobReply:
    return ask(controllers, lambda operator: operator.ShowJob, pb2.ShowJobRequest(name=name))


def _why_off(shown: pb2.ShowJobReply) -> str:
    events = [event for event in shown.history if event.kind == pb2.JOB_REMAP_OFF]
    return events[-1].reason if events else "the change was called off"
