"""Watches over running jobs: ends those whose workers died, says for whom the others wait."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from ina.controller.change import Stage
from ina.controller.job import Job, JobState
from ina.controller.jobs.coordinator import Coordinator
from ina.controller.jobs.events import job_event
from ina.controller.jobs.rounds import Rounds
from ina.controller.switches.switch import Switch
from ina.controller.watch.agreement import Agreement, Difference, find_difference
from ina.controller.watch.departures import departure, never_completed
from ina.controller.watch.leases import LeaseTable, Member
from ina.controller.watch.stalls import (
    LanesAt,
    Report,
    Stall,
    find_stall,
    last_seq,
    oldest_waited_for,
)
from ina.rpc import controller_pb2 as pb2
from ina.rpc.ranks import ranks_text

_log = logging.getLogger(__name__)

CHECK_S = 0.25
"""How often it looks; deaths and stalls are told so much later at most."""
TELL_AGAIN_S = (10.0, 30.0, 60.0)
"""A stall is told again when it has lasted so long; from then on whenever that has doubled."""

ANSWER_S = 1.0
"""Workers that are asked what they have submitted have so long to say it."""


class FailureDetector:
    """What the workers have said, and what follows from it. In the coordinator's event loop."""

    def __init__(
        self,
        coordinator: Coordinator,
        lease_s: float,
        *,
        broken: Callable[[Job], str] = lambda _job: "",
        clock: Callable[[], float] = time.monotonic,
        unix_clock: Callable[[], float] = time.time,
    ) -> None:
        """``broken``: what of a job's ways somebody has said is down; empty: nothing."""
        self.leases = LeaseTable(lease_s)
        self._coordinator = coordinator
        self._broken = broken
        self._clock = clock
        self._unix_clock = unix_clock
        self._reports: dict[Member, Report] = {}
        self._stalls: dict[int, Stall] = {}
        self._tell_again_s: dict[int, float] = {}
        self._asked_s: dict[int, float] = {}
        self._agreements: defaultdict[int, Agreement] = defaultdict(Agreement)
        self._rounds = Rounds("the failure detector", self.check, CHECK_S, gather_s=0.0)

    def heard(self, member: Member, progress: pb2.Progress | None = None) -> None:
        """A worker said something, and perhaps how it gets on."""
        now_s = self._clock()
        self.leases.renew(member, now_s)
        if progress is not None:
            former = self._reports.get(member)
            if former is not None and progress.chunks_done > former.progress.chunks_done:
                # A worker that waits says when its last result came; else it was since the former.
                silent_s = max(0.0, progress.silent_s)
                at_s = now_s - silent_s if progress.in_flight else former.at_s
                self.leases.took_part(member.epoch, max(at_s, former.at_s))
            self._keep(member, progress, now_s)

    def leaves(self, job: Job, rank: int, progress: pb2.Progress, why: str = "") -> None:
        """A worker is about to be removed from its job; so far it has come.

        ``why``: it gives up; empty: it does not.
        """
        member, now_s = Member(job.epoch, rank), self._clock()
        self._keep(member, progress, now_s)
        job.departures[rank] = departure(str(job.members[rank]), progress, now_s, why)

    def gives_up(self, job: Job, rank: int, why: str, cause: pb2.EventKind) -> None:
        """A worker is about to leave since the job cannot go on: so it ends for the others, too.

        ``cause``: SWITCH_LOST or SUMS_CORRUPTED.
        """
        heard = f"rank {rank} ({place_text(job, rank)}) has left: {why}"
        if cause == pb2.SWITCH_LOST and (lost := self._first_switch_lost(job, rank)):
            away_s = self._coordinator.switches[lost].unreachable_s()
            silent = f"the controller has not reached it for {away_s:.0f} s, " if away_s else ""
            heard = f"{job.switch_text(lost)} is lost: {silent}{heard}"
        self._coordinator.lose(job, (), heard, cause)

    def _first_switch_lost(self, job: Job, rank: int) -> str:
        """Which switch a worker that sends to it has lost; empty: that is not known.

        It is one that the controller does not reach either, or the only one that it sends to.
        """
        trees = [tree for mapping in job.mappings for tree in mapping.forest]
        names = [it for it in dict.fromkeys(tree.rack(rank) for tree in trees) if it]
        known = [name for name in names if name in self._coordinator.switches]
        away = [name for name in known if self._coordinator.switches[name].unreachable_s()]
        return (away or (known if len(known) == 1 else [""]))[0]

    def _keep(self, member: Member, progress: pb2.Progress, now_s: float) -> None:
        self._reports[member] = Report(progress, now_s, self._unix_clock())
        self._agreements[member.epoch].hear(progress)

    @contextlib.contextmanager
    def watching(self, member: Member) -> Iterator[None]:
        """While a Watch stream of the worker is open."""
        self.leases.watch_begins(member, self._clock())
        try:
            yield
        finally:
            self.leases.watch_ends(member, self._clock())

    def report(self, member: Member) -> Report | None:
        """What a worker said last."""
        return self._reports.get(member)

    def lease_left_s(self, member: Member) -> float:
        """How long a worker may be silent yet."""
        return self.leases.left_s(member, self._clock())

    def is_dying(self, job: Job) -> bool:
        """Whether one of its workers may be dead, which will soon be sure."""
        now_s = self._clock()
        members = (Member(job.epoch, rank) for rank in job.members)
        return is_up(job) and any(self.leases.is_overdue(member, now_s) for member in members)

    def stall(self, job: Job) -> Stall | None:
        """Who holds up the job; None while it runs."""
        return self._stalls.get(job.epoch)

    def stall_event(self, job: Job) -> pb2.JobEvent | None:
        """JOB_STALLED as of now, for who begins to listen; None while the job runs."""
        stall = self._stalls.get(job.epoch)
        if stall is None:
            return None
        reason = explain(job, stall, self._clock())
        event = job_event(pb2.JOB_STALLED, job, ranks=stall.missing, reason=reason)
        event.unix_s = self._unix_clock()
        return event

    def since_unix_s(self, stall: Stall) -> float:
        """When it began."""
        return self._unix_clock() - (self._clock() - stall.since_s)

    def start(self) -> None:
        """Checks again and again. Leases begin now, also of jobs that run already."""
        self._rounds.start(at_once=True)

    async def close(self) -> None:
        """From now on nobody is declared dead."""
        await self._rounds.close()

    def check(self) -> None:
        """Ends jobs with dead workers and publishes stalls, as of now."""
        now_s = self._clock()
        jobs = [job for job in self._coordinator.jobs() if is_up(job)]
        members = [Member(job.epoch, rank) for job in jobs for rank in job.members]
        self.leases.keep(members, now_s)
        lost = self.leases.lost(now_s)
        for job in jobs:
            away_s = max(switch.unreachable_s() for switch in self._switches(job))
            dead = {rank: lost[m] for rank in job.members if (m := Member(job.epoch, rank)) in lost}
            if differ := self._difference(job):
                self._end_differing(job, differ, now_s)
            elif dead:
                ranks = {*dead, *(it for rank in dead for it in job.dependent(rank))}
                self._coordinator.lose(job, ranks, self._obituary(job, dead), pb2.MEMBER_LOST)
            elif missed := self._missed_for_ever(job, away_s, now_s):
                rank, reason = missed
                self._coordinator.lose(job, [rank], reason, pb2.MEMBER_LOST)
            elif cut_off := self._cut_off(job) or self._cut_through(job, now_s):
                self._coordinator.lose(job, (), cut_off, pb2.SWITCH_LOST)
            else:
                self._look_for_stall(job, now_s)
        self._forget(job.epoch for job in jobs if is_up(job))

    def _switches(self, job: Job) -> list[Switch]:
        """Those that sum it: without any of them it cannot go on."""
        needed = dict.fromkeys(job.memory)
        if job.change is not None and job.change.stage is Stage.DECIDED:
            needed |= dict.fromkeys(job.change.other.memory)
        return [self._coordinator.switches[name] for name in needed]

    def _difference(self, job: Job) -> Difference | None:
        if not self._agreements[job.epoch].is_doubtful:
            return None
        reports = {
            rank: report.progress
            for rank in range(job.world_size)
            if (report := self._reports.get(Member(job.epoch, rank))) is not None
        }
        return find_difference(reports, job.world_size, job.missing())

    def _end_differing(self, job: Job, differ: Difference, now_s: float) -> None:
        """Ends a job whose ranks reduce different things, once all have said what."""
        if job.epoch not in self._asked_s:
            self._asked_s[job.epoch] = now_s
            if not differ.is_whole:
                self._tell(pb2.RANKS_DIFFER, job, (), f"{differ.reason}; asking all of them")
        if differ.is_whole or now_s - self._asked_s[job.epoch] >= ANSWER_S:
            kind = pb2.SUMS_CORRUPTED if differ.is_damage else pb2.RANKS_DIFFER
            self._coordinator.lose(job, (), differ.reason, kind)

    def _progress(self, job: Job) -> dict[int, pb2.Progress]:
        found = {rank: self._reports.get(Member(job.epoch, rank)) for rank in job.members}
        return {rank: report.progress for rank, report in found.items() if report is not None}

    def _obituary(self, job: Job, dead: dict[int, str]) -> str:
        parts = []
        for rank, why in sorted(dead.items()):
            report = self._reports.get(Member(job.epoch, rank))
            seq = None if report is None else last_seq(report.progress)
            sent = "" if seq is None else f", last sequence number {seq}"
            parts.append(f"rank {rank} ({place_text(job, rank)}) {why}{sent}")
            if cut_off := job.dependent(rank):
                parts.append(
                    f"{ranks_text(cut_off)} sent to the node of their host, in its process"
                )
        waited_for = oldest_waited_for(
            report.progress
            for rank in job.members
            if rank not in dead and (report := self._reports.get(Member(job.epoch, rank)))
        )
        if waited_for is not None:
            parts.append(f"the others wait for sequence number {waited_for}")
        return "; ".join(parts)

    def _missed_for_ever(self, job: Job, away_s: float, now_s: float) -> tuple[int, str] | None:
        """Which rank has left in the middle of what others have begun, and a line about it."""
        reports = {rank: self._reports.get(Member(job.epoch, rank)) for rank in job.members}
        stall = None if away_s else self._stalls.get(job.epoch)
        return never_completed(job.departures, reports, stall, now_s)

    def _cut_off(self, job: Job) -> str:
        """Which switch neither the controller nor a worker hears; empty: none, as far as known."""
        for switch in self._switches(job):
            away_s = switch.unreachable_s()
            if away_s >= switch.config.loss_s and (heard := self._silence(job, switch)):
                return (
                    f"{job.switch_text(switch.name)} is lost:"
                    f" the controller has not reached it for {away_s:.0f} s, {heard}"
                )
        return ""

    def _cut_through(self, job: Job, now_s: float) -> str:
        """What is down between the workers and the sums that all have sent; empty: nothing."""
        stall = self._stalls.get(job.epoch)
        if stall is None or stall.missing or stall.unsure:
            return ""
        stalled_s = now_s - stall.since_s
        patience_s = max(switch.config.loss_s for switch in self._switches(job))
        if stalled_s < patience_s or not (broken := self._broken(job)):
            return ""
        return f"{broken}, and {ranks_text(stall.waiting)} waited for {stalled_s:.0f} s"

    def _silence(self, job: Job, switch: Switch) -> str:
        """Which worker has heard nothing of the switch either; empty: none that tells.

        A worker may also wait for another one, which is slow. So all must wait, or all have sent.
        """
        progress = self._progress(job)
        silent = {
            rank: report.silent_s
            for rank, report in sorted(progress.items())
            if report.silent_s >= switch.config.loss_s
        }
        stall = self._stalls.get(job.epoch)
        nobody_is_missing = stall is not None and not stall.missing and not stall.unsure
        if not silent or not (nobody_is_missing or len(silent) == len(job.members)):
            return ""
        rank, silent_s = next(iter(silent.items()))
        return f"rank {rank} has had no result for {silent_s:.0f} s"

    def _look_for_stall(self, job: Job, now_s: float) -> None:
        former = self._stalls.get(job.epoch)
        reports = {
            rank: report
            for rank in range(job.world_size)
            if (report := self._reports.get(Member(job.epoch, rank))) is not None
        }
        found = find_stall(
            reports,
            here=frozenset(job.members),
            left=frozenset(job.missing()),
            roots=_roots(job),
            heartbeat_s=self.leases.heartbeat_s,
            now_s=now_s,
        )
        if isinstance(found, Stall):
            self._stalls[job.epoch] = found
            stalled_s = now_s - found.since_s
            is_new = former is None or former.missing != found.missing
            if is_new or stalled_s >= self._tell_again_s[job.epoch]:
                self._tell_again_s[job.epoch] = next(
                    (after_s for after_s in TELL_AGAIN_S if after_s > stalled_s), 2 * stalled_s
                )
                self._tell(pb2.JOB_STALLED, job, found.missing, explain(job, found, now_s))
        elif found is None and former is not None:
            del self._stalls[job.epoch]
            if any(rank in job.members for rank in former.waiting):  # else they gave up and left
                self._tell(pb2.JOB_RESUMED, job, (), f"after {now_s - former.since_s:.1f} s")

    def _tell(self, kind: pb2.EventKind, job: Job, ranks: Iterable[int], reason: str) -> None:
        self._coordinator.events.publish(job_event(kind, job, ranks=ranks, reason=reason))

    def _forget(self, epochs: Iterable[int]) -> None:
        alive = set(epochs)
        for member in [member for member in self._reports if member.epoch not in alive]:
            del self._reports[member]
        for of_epochs in (self._stalls, self._tell_again_s, self._asked_s, self._agreements):
            for epoch in of_epochs.keys() - alive:
                del of_epochs[epoch]


def is_up(job: Job) -> bool:
    """Whether workers of the job may send."""
    return job.state in (JobState.RUNNING, JobState.LEAVING) and bool(job.members)


def _roots(job: Job) -> dict[int, list[LanesAt]]:
    """By epoch of its mappings, the older one first: where results are made."""
    found = {}
    for mapping in job.mappings:
        places = []
        for part in mapping.parts:
            root = part.tree.root
            taken = part.memory_at(root)
            if taken is not None:
                places.append(LanesAt(root.switch, taken.first, part.lanes))
        if len(places) == len(mapping.forest):
            found[mapping.epoch] = places
    return found


_NAMED_RANKS = 8


def place_text(job: Job, rank: int) -> str:
    """Where a worker is, for people: ``leaf1, 10.0.0.3:4433``, in one rack its address alone."""
    at = str(job.members.get(rank, "it has left"))
    return f"{rack}, {at}" if (rack := job.rack_of(rank)) else at


def missing_text(job: Job, missing: Sequence[int]) -> str:
    """Who is missing, and in which rack; of many, whole ranges of ranks by rack."""
    if len(missing) <= _NAMED_RANKS:
        return ", ".join(f"rank {rank} ({place_text(job, rank)})" for rank in missing)
    racks: defaultdict[str, list[int]] = defaultdict(list)
    for rank in missing:
        racks[job.rack_of(rank)].append(rank)
    return ", ".join(
        f"{ranks_text(ranks)}{f' ({rack})' if rack else ''}" for rack, ranks in racks.items()
    )


def explain(job: Job, stall: Stall, now_s: float) -> str:
    """One line: who is missing, what, since when."""
    of = f" of {stall.root or job.switch}" if job.rack_of(0) else ""
    what = f"sequence number {stall.seq} (slot {stall.slot}{of})"
    waiting = f"{ranks_text(stall.waiting)} waited for {now_s - stall.since_s:.1f} s"
    if not stall.missing and stall.unsure:
        return f"{missing_text(job, stall.unsure)} may not have sent {what}: {waiting}"
    if not stall.missing:
        return f"all have sent {what}, and no result arrives: {waiting}"
    have = "have" if len(stall.missing) > 1 else "has"
    return f"{missing_text(job, stall.missing)} {have} not sent {what}: {waiting}"
