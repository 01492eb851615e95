"""Ranks that have left: which sums still need them, and so can never be completed. No I/O.

A rank that has left sends nothing any more. What it has sent stays in its slots, so a sum that it
has taken part in can still be had by ranks whose copy of the result was lost.
"""

from __future__ import annotations

from collections.abc import Mapping

from ina.controller.job import Departure
from ina.controller.watch.stalls import STALL_S, Report, Stall
from ina.rpc import controller_pb2 as pb2
from ina.rpc.operations import collective_of

_MAX_STORED = (1 << 63) - 1
"""A store's integers have 64 bits with a sign; a worker may say more, and means nothing by it."""


def departure(where: str, progress: pb2.Progress, at_s: float, why: str = "") -> Departure:
    """What a rank's last words say, which come from ``where`` at ``at_s``."""
    finished = progress.operations_done  # what was begun at the very end is not done
    if progress.HasField("oldest"):
        finished = progress.oldest.number - 1
    submitted = progress.operations_submitted
    return Departure(where, min(submitted, _MAX_STORED), min(finished, _MAX_STORED), at_s, why)


def never_completed(
    departures: Mapping[int, Departure],
    reports: Mapping[int, Report | None],
    stall: Stall | None,
    now_s: float,
) -> tuple[int, str] | None:
    """The rank that is missed for ever, and a line that says for what; None: none is, or not yet.

    Args:
        departures: of the ranks that have left, by rank.
        reports: the last of each rank that is still there; None: it has said nothing yet.
        stall: of the job, if there is one while the switch can be reached.
        now_s: the clock of ``Departure.at_s`` and of the reports.
    """
    if not departures:
        return None
    return _not_sent(departures, reports, now_s) or _not_finished(departures, reports, stall, now_s)


def _not_sent(
    departures: Mapping[int, Departure], reports: Mapping[int, Report | None], now_s: float
) -> tuple[int, str] | None:
    """Somebody waits for an operation that a rank has not even begun."""
    rank, first = min(departures.items(), key=lambda item: item[1].submitted)
    waits = {
        other: report
        for other, report in sorted(reports.items())
        if report is not None and report.progress.HasField("oldest")
    }
    blocked = [
        it for it, report in waits.items() if report.progress.oldest.number > first.submitted
    ]
    # Whose copy of a complete result was lost is given the time to get it from the slot.
    may_go_on = any(
        report is None
        or report.at_s < first.at_s
        or (report.progress.HasField("oldest") and other not in blocked and not report.is_held_up)
        for other, report in reports.items()
    )
    if blocked and (not may_go_on or now_s - first.at_s >= STALL_S):
        return rank, _explain(rank, first, blocked[0], waits[blocked[0]].progress)
    return None


def _not_finished(
    departures: Mapping[int, Departure],
    reports: Mapping[int, Report | None],
    stall: Stall | None,
    now_s: float,
) -> tuple[int, str] | None:
    """All who are here have sent, a rank left in the middle of it, and no result comes.

    What the rank had sent may have been lost on its way; it does not send it again.
    """
    if stall is None or not departures.keys() >= {*stall.missing, *stall.unsure}:
        return None
    rank, departure = min(departures.items(), key=lambda item: item[1].finished)
    if now_s - max(departure.at_s, stall.since_s) < STALL_S:
        return None
    for other in stall.waiting:
        report = reports.get(other)
        if report is not None and report.progress.oldest.number > departure.finished:
            return rank, _explain(rank, departure, other, report.progress)
    return None


def _explain(rank: int, departure: Departure, other: int, progress: pb2.Progress) -> str:
    number, done = progress.oldest.number, departure.finished
    what = collective_of(progress.oldest)
    has = "has not sent" if number > departure.submitted else "has not finished"
    left = (
        f"rank {rank} ({departure.where}) has left after {done} operation{'s' * (done != 1)} and"
        f" {has} operation {number} ({what}), for which rank {other} waits"
    )
    return f"{left}; it gave up: {departure.why}" if departure.why else left
