"""Who is missing: what the workers report of their lanes, put side by side. No I/O.

Lane ``i`` of every worker carries the sequence numbers ``i + k W``, one at a time, and none goes on
before all have sent theirs. So where a worker waits for a number, those whose lane has only sent an
older one are the ones that hold up the job.

While a job changes to another mapping it has two sets of lanes, of one after the other. A worker
reports the older one as long as it waits there; so who reports the newer one is not missed there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ina.controller.watch.agreement import MAX_SUBMITTED
from ina.protocol import serial
from ina.rpc import controller_pb2 as pb2
from ina.trees.errors import JobRequestError

STALL_S = 2.0
"""Without any result for so long, a worker with packets in flight is held up."""
MAX_WAIT_S = 1e9
"""Longer than any computer has run."""
STALE_HEARTBEATS = 2.5
"""A worker whose report is older than so many heartbeats is taken for missing."""


@dataclass(frozen=True)
class Report:
    """What a worker said with a heartbeat."""

    progress: pb2.Progress
    at_s: float
    """Monotonic clock of the controller."""
    unix_s: float

    @property
    def silent_since_s(self) -> float:
        """When the worker had its last result."""
        return self.at_s - self.progress.silent_s

    @property
    def is_held_up(self) -> bool:
        """Whether it has waited for :data:`STALL_S` and nothing came."""
        return self.progress.in_flight > 0 and self.progress.silent_s >= STALL_S


@dataclass(frozen=True)
class Stall:
    """Nothing of a job completes."""

    seq: int
    """The oldest sequence number that somebody waits for."""
    slot: int
    """Its physical slot, at the root of the tree that has its lane."""
    missing: tuple[int, ...]
    """Ranks that have not sent it; none: all have, and packets are lost on the way."""
    waiting: tuple[int, ...]
    """Ranks that have sent it and wait."""
    since_s: float
    unsure: tuple[int, ...] = ()
    """Ranks that have left of which it is not known whether they have sent it."""
    root: str = field(default="", compare=False)
    """The name of that, for people."""


@dataclass(frozen=True)
class LanesAt:
    """Where the results of some of a job's lanes are made."""

    root: str
    """The name of the node."""
    first_slot: int
    """Physical slot there of their slot 0."""
    lanes: range


UNDECIDED = "undecided"
"""Somebody waits, but not all reports are new enough to say for whom."""


def last_seq(progress: pb2.Progress) -> int | None:
    """The newest sequence number that the worker said it had sent."""
    if progress.lane_seqs:
        seqs = np.array(progress.lane_seqs, np.uint32)
        return int(seqs[(seqs - seqs[0]).view(np.int32).argmax()])
    return progress.oldest_seq if progress.in_flight else None


def oldest_waited_for(reports: Iterable[pb2.Progress]) -> int | None:
    """The oldest of the sequence numbers that these workers have waited for longest."""
    oldest: int | None = None
    for progress in reports:
        if progress.in_flight and (oldest is None or serial.is_newer(oldest, progress.oldest_seq)):
            oldest = progress.oldest_seq
    return oldest


def check_progress(progress: pb2.Progress, slots: int, where: str) -> None:
    """Raises :class:`JobRequestError` if it cannot be of a worker of such a job.

    It has other lanes, too much is listed, or a time is none.
    """
    for waited_s in (progress.silent_s, progress.oldest_waited_s):
        if not abs(waited_s) <= MAX_WAIT_S:  # clocks of two threads may give less than 0
            raise JobRequestError(f"{where}: reports to have waited for {waited_s:g} s")
    lanes = 1 << ((slots // 2).bit_length() - 1)
    if len(progress.submitted) > MAX_SUBMITTED:
        raise JobRequestError(
            f"{where}: lists {len(progress.submitted)} operations, at most {MAX_SUBMITTED}"
        )
    if not progress.lane_seqs and not progress.lanes_waiting:
        return
    if len(progress.lane_seqs) != lanes or len(progress.lanes_waiting) != (lanes + 7) // 8:
        raise JobRequestError(
            f"{where}: reports {len(progress.lane_seqs)} lanes and"
            f" {len(progress.lanes_waiting)} bytes of waiting ones; the job has {lanes} lanes"
        )


_GONE = -1
"""Of a report: its mapping is gone since. Who sent it has said "done" after that."""


def find_stall(
    reports: Mapping[int, Report],
    here: frozenset[int],
    left: frozenset[int],
    roots: Mapping[int, Sequence[LanesAt]],
    heartbeat_s: float,
    now_s: float,
) -> Stall | str | None:
    """Whom the workers wait for: a stall, None (it runs), or :data:`UNDECIDED`.

    Args:
        reports: the last report by rank, also of those that have left; some may be missing.
        here: ranks that have joined and not left.
        left: ranks that have left.
        roots: by epoch of the job's mappings, the older one first: where results are made.
        heartbeat_s: how often reports come.
        now_s: the clock of ``Report.at_s``.
    """
    epochs = list(roots)
    age = {rank: _index(epochs, report.progress.mapping_epoch) for rank, report in reports.items()}
    unsure: list[int] = []
    said = here & reports.keys()
    held_up = [rank for rank in said if reports[rank].is_held_up and age[rank] != _GONE]
    if not held_up:
        return None
    since_s = min(reports[rank].silent_since_s for rank in held_up)
    oldest_age = min(age[rank] for rank in held_up)
    told = {rank: reports.get(rank) for rank in sorted(here)}
    heard = _heard(told, age, oldest_age, since_s, now_s - STALE_HEARTBEATS * heartbeat_s)
    if heard is None:
        return UNDECIDED
    known, silent = heard
    lanes = np.array([reports[rank].progress.lane_seqs for rank in known], np.uint32)
    if not lanes.size:
        return UNDECIDED
    waiting = np.array([_bits(reports[rank].progress, lanes.shape[1]) for rank in known])
    if not waiting.any():
        return UNDECIDED
    # Distances from one of the numbers, so that comparing them holds where they wrap.
    distance = (lanes - lanes[0, 0]).view(np.int32)
    oldest = np.where(waiting, distance, np.iinfo(np.int32).max).min(axis=0)
    lane = int(oldest.argmin())
    behind = distance[:, lane] < oldest[lane]
    at = waiting[:, lane] & (distance[:, lane] == oldest[lane])
    waits = [rank for rank, is_at in zip(known, at, strict=True) if is_at]
    missing = [rank for rank, is_behind in zip(known, behind, strict=True) if is_behind] + silent
    if not missing:
        newest_s = max(reports[rank].at_s for rank in known)
        if all(reports[rank].at_s < newest_s for rank in waits):
            return UNDECIDED  # it may have had its result since
        for rank in sorted(left):
            its = _newest_sent(reports.get(rank), age.get(rank, _GONE), oldest_age, lanes.shape[1])
            if its is None:
                unsure.append(rank)
            elif int((its - lanes[0, 0]).view(np.int32)[lane]) < oldest[lane]:
                missing.append(rank)
    seq = (int(lanes[0, 0]) + int(oldest[lane])) & 0xFFFF_FFFF
    root, slot = _slot(roots[epochs[oldest_age]], seq, lanes.shape[1])
    return Stall(seq, slot, tuple(sorted(missing)), tuple(waits), since_s, tuple(unsure), root=root)


def _heard(
    reports: Mapping[int, Report | None],
    age: Mapping[int, int],
    oldest_age: int,
    since_s: float,
    late_s: float,
) -> tuple[list[int], list[int]] | None:
    """Ranks that have said what is on their lanes, and ranks that have sent nothing there; None:
    some have yet to say it. ``late_s``: who has said nothing since then is not waited for."""
    known, silent = [], []
    for rank, report in reports.items():
        heard_s = since_s if report is None else report.at_s
        if report is not None and age[rank] > oldest_age:
            continue
        is_of_now = report is not None and age[rank] != _GONE and heard_s >= since_s
        if is_of_now and age[rank] < oldest_age:
            silent.append(rank)  # it has sent nothing there yet
        elif is_of_now and report is not None and report.progress.lane_seqs:
            known.append(rank)
        elif heard_s < late_s:
            silent.append(rank)
        else:
            return None
    return known, silent


def _newest_sent(
    report: Report | None, age: int, of_age: int, lanes: int
) -> npt.NDArray[np.uint32] | None:
    """By lane, of a rank that has left, in the mapping of this age; None: it is not known."""
    if report is None or age != of_age or len(report.progress.lane_seqs) != lanes:
        return None
    return np.array(report.progress.lane_seqs, np.uint32)


def _index(epochs: Sequence[int], epoch: int) -> int:
    """Which mapping a report is of; 0: the older, as workers said that knew of one alone."""
    if not epoch:
        return 0
    return epochs.index(epoch) if epoch in epochs else _GONE


def _slot(roots: Sequence[LanesAt], seq: int, lanes: int) -> tuple[str, int]:
    """The root that has the lane, and its physical slot there."""
    version, lane = seq // lanes % 2, seq % lanes
    at = next((it for it in roots if lane in it.lanes), roots[-1])
    return at.root, at.first_slot + version * len(at.lanes) + lane - at.lanes.start


def _bits(progress: pb2.Progress, lanes: int) -> npt.NDArray[np.bool_]:
    packed = np.frombuffer(progress.lanes_waiting, np.uint8)
    return np.unpackbits(packed, bitorder="little", count=lanes).astype(np.bool_)
