"""What keeps a job: one verdict from all that is known of it, for every command that tells. Pure.

The controller may know of more than one trouble at a time, and some follow from others: without its
switch a job looks as one whose packets are lost, and behind a switch that refuses packets some rank
always seems to be missing. The causes are asked for in that order, and the first that holds is it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from ina.protocol.addresses import place_of
from ina.rpc import controller_pb2 as pb2
from ina.rpc.ranks import ranks_text as ranks_of
from ina.units import time_text

QUIET_S = 2.0
"""A worker that has waited less is no news."""
SILENT_ADVICE = "it is dead, stopped, or cut off from the controller"
_PLACED_RANKS = 8
"""Of more, where each is would make no line."""
_UNREACHABLE = "unreachable"
"""How ``ShowControllerReply.switch_state`` begins then."""


class Cause(Enum):
    """Of what a job waits for, or that it does not."""

    NONE = auto()  # it runs
    ENDED = auto()
    SWITCH_AWAY = auto()  # the controller does not reach it, and no result comes
    SWITCH_REFUSES = auto()  # its address answers workers that nobody listens
    NOT_JOINED = auto()  # ranks that have not
    STARTING = auto()  # its entries are being written
    LEFT = auto()  # a rank that others wait for has left
    SILENT = auto()  # nothing is heard of a rank that others wait for
    MISSING = auto()  # a rank that others wait for has not sent
    NO_RESULT = auto()  # all have sent: packets are lost on the way
    LEAVING = auto()  # ranks have left, the others do not wait


@dataclass(frozen=True)
class Known:
    """All that is known of a job; what is not known is empty."""

    job: pb2.Job
    members: Sequence[pb2.Member] = ()
    history: Sequence[pb2.JobEvent] = ()
    switch_addr: str = ""
    """P4Runtime, as ShowController says it."""
    switch_state: str = ""

    @property
    def switch_trouble(self) -> str:
        """Why the controller does not reach the switch; empty: it does, or it is not known."""
        return switch_trouble(self.switch_state)


@dataclass(frozen=True)
class Verdict:
    """What it is and what to do; one line each. ``advice`` is empty where nothing is to be done."""

    cause: Cause
    found: str
    advice: str = ""

    @property
    def ok(self) -> bool:
        """Whether the job gets on, or ends as it should."""
        return self.cause in (Cause.NONE, Cause.LEAVING)


def judge(known: Known, now_unix_s: float) -> Verdict:
    """The verdict on one job, as of now."""
    job = known.job
    if job.state == "ended":
        return _ended(known)
    if job.state == "joining":
        return _joining(known)
    if job.state == "starting":
        return _starting(known)
    if job.HasField("stall"):
        return _stalled(known, now_unix_s)
    if job.state == "leaving":
        return _leaving(known)
    trouble = known.switch_trouble
    note = f"; the controller does not reach the switch ({trouble}), sums do not need that"
    return Verdict(Cause.NONE, "it runs" + _corrupted(known) + (note if trouble else ""))


def _corrupted(known: Known) -> str:
    """What to add where results did not verify; empty: none."""
    said = [
        f"{member.progress.corrupted_sums} to rank {member.rank}"
        for member in known.members
        if member.progress.corrupted_sums
    ]
    what = "results were no sums of what the workers sent, and asked for again"
    return f"; {what}: {', '.join(said)}" if said else ""


def _ended(known: Known) -> Verdict:
    why = ""
    for event in reversed(known.history):  # the last one says only that it is over
        if why or event.kind == pb2.JOB_CREATED:
            break
        why = event.reason if event.fatal or event.kind == pb2.JOB_ENDED else ""
    return Verdict(Cause.ENDED, "it has ended" + (f": {why}" if why else ""))


def _joining(known: Known) -> Verdict:
    job = known.job
    absent = [rank for rank in range(job.world_size) if rank not in job.joined]
    found = f"waits for {ranks_text(absent)} of {job.world_size} to join"
    if known.switch_trouble:
        found += f"; nor does the controller reach the switch: {known.switch_trouble}"
    advice = "are those processes running, do they name the same controller, job and world size?"
    return Verdict(Cause.NOT_JOINED, found, advice)


def _starting(known: Known) -> Verdict:
    if known.switch_trouble:
        found = f"cannot start: the controller does not reach the switch: {known.switch_trouble}"
        return Verdict(Cause.SWITCH_AWAY, found, switch_advice(known.switch_addr))
    return Verdict(Cause.STARTING, "all have joined; the controller writes it into the switch")


def _leaving(known: Known) -> Verdict:
    job = known.job
    gone = [rank for rank in range(job.world_size) if rank not in job.joined]
    if not job.joined and known.switch_trouble:
        found = "its entries are removed once the controller reaches the switch"
        advice = switch_advice(known.switch_addr)
        return Verdict(Cause.SWITCH_AWAY, f"{found}: {known.switch_trouble}", advice)
    have = "has" if len(gone) == 1 else "have"
    stay = f", {ranks_text(job.joined)} not yet" if job.joined else ""
    return Verdict(Cause.LEAVING, f"{ranks_text(gone)} {have} left{stay}")


def _stalled(known: Known, now_unix_s: float) -> Verdict:
    job, stall = known.job, known.job.stall
    since = f"for {time_text(round(max(0.0, now_unix_s - stall.since_unix_s)))}"
    waiting = f" ({ranks_text(stall.waiting)} waiting)" if stall.waiting else ""
    where = f"slot {stall.slot}, sequence number {stall.seq}, {since}{waiting}"
    if known.switch_trouble:
        found = "no result comes, and the controller does not reach the switch either"
        advice = switch_advice(known.switch_addr)
        return Verdict(Cause.SWITCH_AWAY, f"{found} ({known.switch_trouble}): {where}", advice)
    refused = [member.rank for member in known.members if member.progress.switch_refuses]
    if refused:
        found = f"nobody listens at the switch's address any more, say {ranks_text(refused)}"
        advice = (
            "is the switch running, and are switch.data_host and switch.data_udp_port in the"
            " controller's file its own?"
        )
        return Verdict(Cause.SWITCH_REFUSES, f"{found}: {where}", advice)
    if stall.unsure and not stall.missing:
        return _left(f"{ranks_text(stall.unsure)} left, and may not have sent it: {where}")
    if not stall.missing:
        advice = (
            "packets are lost one way: run ina doctor --controller on the waiting hosts"
            f" ({ranks_text(stall.waiting)})"
        )
        found = f"all have sent it, and no result comes: {where}{_corrupted(known)}"
        return Verdict(Cause.NO_RESULT, found, advice)
    have = "has" if len(stall.missing) == 1 else "have"
    gone = [rank for rank in stall.missing if rank not in job.joined]
    if gone:
        has = "has" if len(gone) == 1 else "have"
        return _left(f"{ranks_text(gone)} {has} left and not sent it: {where}")
    found = f"{ranks_text(stall.missing, known.members)} {have} not sent it: {where}"
    unheard = [
        f"rank {member.rank}: {silent}"
        for member in known.members
        if member.rank in stall.missing and (silent := silence(member, now_unix_s))
    ]
    if unheard:
        return Verdict(Cause.SILENT, "; ".join([found, *unheard]), SILENT_ADVICE)
    return Verdict(Cause.MISSING, found, f"ina doctor --job {job.name} says what it does")


def silence(member: pb2.Member, now_unix_s: float) -> str:
    """How long nothing was heard of it; empty: it has been heard of late."""
    age_s = now_unix_s - member.progress_unix_s
    if not member.progress_unix_s or age_s <= max(QUIET_S, member.lease_left_s):
        return ""
    return f"no heartbeat for {age_s:.0f} s, its lease ends in {member.lease_left_s:.0f} s"


def switch_of(job: pb2.Job, controller: pb2.ShowControllerReply) -> pb2.SwitchStatus:
    """The job's switch, as its controller says; empty fields are not known.

    Of several the first that is in trouble, else the one that makes its results.
    """
    its = [switch for switch in controller.switches if switch.name in (job.switch, *job.switches)]
    its.sort(key=lambda switch: (not switch_trouble(switch.state), switch.name != job.switch))
    if its:
        return its[0]
    return pb2.SwitchStatus(address=controller.switch_addr, state=controller.switch_state)


def switch_trouble(switch_state: str) -> str:
    """Why a controller does not reach its switch, from what it says; empty: it does."""
    if not switch_state.startswith(_UNREACHABLE):
        return ""
    return switch_state.removeprefix(_UNREACHABLE).lstrip(": ") or _UNREACHABLE


def switch_advice(switch_addr: str) -> str:
    """What to do where the controller does not reach its switch."""
    at = f" at {switch_addr}" if switch_addr else ""
    return f"is the switch running, and does its P4Runtime server{at} answer the controller's host?"


def ranks_text(ranks: Iterable[int], members: Sequence[pb2.Member] = ()) -> str:
    """``rank 2 (10.0.0.3:4433)``, ``ranks 0, 1``, ``ranks 0-31, 64``; many without their places."""
    found = sorted(ranks)
    if not found:
        return "no rank"
    where = {member.rank: f" ({place(member)})" for member in members}
    if not where or len(found) > _PLACED_RANKS:
        return ranks_of(found)
    named = [f"{rank}{where.get(rank, '')}" for rank in found]
    return f"rank{'s' if len(named) > 1 else ''} {', '.join(named)}"


def place(member: pb2.Member) -> str:
    """Where a worker is, for people."""
    return place_of(member.host, member.udp_port, member.process)


def _left(found: str) -> Verdict:
    advice = (
        "a rank that has left never sends, so the job ends: see its log, it may have had fewer"
        " batches than the others"
    )
    return Verdict(Cause.LEFT, found, advice)
