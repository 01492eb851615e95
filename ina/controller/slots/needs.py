"""What jobs need of a switch's memory, learned from their own steps or said by them. Pure.

A worker reports totals with its heartbeats: packets summed, time with sums pending, how much of
that after it had nothing more to send, round trips, how many operations a step has. The difference
of two reports is what happened in between; that of the slowest worker, which waits least, counts.

What was learned of jobs is kept as long as the controller's term, for those that nobody knows yet:
one that has come before, or others.
"""

from __future__ import annotations

import statistics
from collections import OrderedDict
from dataclasses import dataclass

from ina.controller.memory.demand import StepModel
from ina.rpc import controller_pb2 as pb2

REMEMBERED_S = 100.0
"""What was seen counts by how long it was seen for, of so long altogether; what is older, less."""
LEAST_WINDOW_S = 1.0
"""Two reports that are less apart say too little."""
KNOWN_WINDOW_S = 10.0
"""Of a job that is known, these do: in a few seconds operations are few, and counted whole."""
SLOTS_ARE_SHORT = 0.8
"""Where packets in flight are below this share of what slots allow, it is the link that is short:
W payloads a round trip is then more than a worker sends."""
UNKNOWN_STEP_S = 1.0
UNKNOWN_LEFT_S = 60.0
"""A job that has not said how many steps it takes goes on for as long as it has run, and at least
so long."""


@dataclass(frozen=True)
class Said:
    """What a job says itself."""

    deadline_unix_s: float = 0.0
    """0: it has none."""
    steps: int = 0
    """0: not known."""


@dataclass(frozen=True)
class _Window:
    """What a worker did between two reports, a step."""

    seen_s: float
    """For so long."""
    step_s: float
    tail_s: float
    busy_s: float
    bytes: float

    @property
    def waits(self) -> float:
        """Share of its time that it waits: who waits least is waited for."""
        return self.tail_s / self.step_s


class Needs:
    """Of one job."""

    def __init__(
        self, said: Said, payload_bytes: int, servers: int = 0, guess: StepModel | None = None
    ) -> None:
        """``payload_bytes``: of values in one packet. ``servers``: workers among whose links an
        aggregator's part of the sums is dealt; 0: it has no aggregator. ``guess``: what its steps
        are supposed to be until some have been seen."""
        self.said = said
        self._guess = guess
        self._payload_bytes = payload_bytes
        self._slots_part = (servers - 1) / servers if servers else 1.0
        self._has_aggregator = servers > 0
        self._beside_bytes_per_s = 0.0
        self._reports: dict[int, tuple[pb2.Progress, float, int]] = {}
        self._windows: dict[int, _Window] = {}
        self._slowest = -1
        self._steps_done = 0.0
        self._round_trip_s = 0.0
        self._overlap_s = 0.0
        self._line_bytes_per_s = 0.0
        self._learned: _Window | None = None

    @property
    def is_known(self) -> bool:
        """Whether steps of it have been seen."""
        return self._learned is not None

    @property
    def steps_done(self) -> float:
        """So far, as far as is known."""
        return self._steps_done

    def hear(self, rank: int, progress: pb2.Progress, slots: int, now_s: float) -> bool:
        """A worker reports, of a job that has so many ``slots``; whether its steps are known better
        now."""
        if rank == 0 and (progress.deadline_unix_s or progress.steps):
            # A controller that was started again learns it from here.
            self.said = Said(progress.deadline_unix_s, progress.steps)
        if progress.round_trip_s > 0.0:
            least_s = self._round_trip_s or progress.round_trip_s
            # The least is what the path takes; what is above it is waiting, for queues and others.
            self._round_trip_s = min(least_s, progress.round_trip_s)
        if progress.step_operations:
            done = progress.operations_done / progress.step_operations
            self._steps_done = max(self._steps_done, done)
        former = self._reports.get(rank)
        if former is not None and progress.operations_done < former[0].operations_done:
            former = None  # it counts from the start
        if former is None or former[2] != slots:  # a part of what it did was with other slots
            self._reports[rank] = (progress, now_s, slots)
            return False
        before, at_s, _ = former
        operations = progress.operations_done - before.operations_done
        steps = operations / (progress.step_operations or 1)
        window_s = KNOWN_WINDOW_S if rank in self._windows else LEAST_WINDOW_S
        if now_s - at_s < window_s or steps < 1:
            return False
        self._reports[rank] = (progress, now_s, slots)
        tail_s, busy_s = progress.tail_s - before.tail_s, progress.busy_s - before.busy_s
        sent_bytes = self._payload_bytes * (progress.chunks_done - before.chunks_done)
        if busy_s <= 0 or sent_bytes <= 0:
            return False
        each = (
            now_s - at_s,
            (now_s - at_s) / steps,
            tail_s / steps,
            busy_s / steps,
            sent_bytes / steps,
        )
        window = self._windows[rank] = _Window(*each)
        if rank == self._slowest:
            self._slowest = min(self._windows, key=lambda it: self._windows[it].waits)
            self._learn(self._windows[self._slowest], slots)
            return True
        if self._slowest not in self._windows or (
            window.waits < self._windows[self._slowest].waits
        ):
            self._slowest = rank
            self._learn(window, slots)
            return True
        return False

    def _learn(self, slowest: _Window, slots: int) -> None:
        self._learned = _smoothed(self._learned, slowest)
        # What was hidden once can be: with more slots the tail is shorter, and less is.
        self._overlap_s = max(self._overlap_s * 0.99, slowest.busy_s - slowest.tail_s)
        rate = slowest.bytes / slowest.busy_s
        if self._round_trip_s <= 0:
            return
        most = slots // 2 * self._lane_bytes_per_s
        if self._has_aggregator:
            self._beside_bytes_per_s = max(0.0, rate - most)
        if rate < SLOTS_ARE_SHORT * most:
            self._line_bytes_per_s = max(self._line_bytes_per_s * 0.9, rate)
        elif rate > self._line_bytes_per_s:
            self._line_bytes_per_s = 0.0  # it bears more than was thought, how much is not known

    def steps(self, default_slots: int) -> StepModel:
        """Of its steps. Of a job that nobody knows yet as was guessed, else that ``default_slots``
        are of use to it."""
        seen = self._learned
        if seen is None or self._round_trip_s <= 0:
            if self._guess is not None:
                return self._guess
            lanes = max(1, default_slots // 2)
            return StepModel(UNKNOWN_STEP_S, UNKNOWN_STEP_S, lanes * UNKNOWN_STEP_S, 1.0)
        compute_s = max(0.0, seen.step_s - seen.tail_s)
        return StepModel(
            compute_s,
            min(self._overlap_s, compute_s),
            seen.bytes,
            self._lane_bytes_per_s,
            beside_bytes_per_s=self._beside_bytes_per_s,
        ).with_line(self._line_bytes_per_s)

    @property
    def _lane_bytes_per_s(self) -> float:
        return self._slots_part * self._payload_bytes / self._round_trip_s

    def steps_left(self, steps: StepModel, useful: int, age_s: float) -> float:
        """To its end. ``steps``, ``useful``: as of now; ``age_s``: since it began."""
        if self.said.steps and (self._steps_done or not self.is_known):
            return max(1.0, self.said.steps - self._steps_done)
        step_s = steps.step_s(useful)
        return max(age_s, UNKNOWN_LEFT_S) / step_s if step_s > 0 else 1.0


def _smoothed(before: _Window | None, seen: _Window) -> _Window:
    if before is None:
        return seen

    remembered_s = min(before.seen_s, max(0.0, REMEMBERED_S - seen.seen_s))
    weight = seen.seen_s / (remembered_s + seen.seen_s)

    def mixed(old: float, new: float) -> float:
        return old + weight * (new - old)

    return _Window(
        remembered_s + seen.seen_s,
        mixed(before.step_s, seen.step_s),
        mixed(before.tail_s, seen.tail_s),
        mixed(before.busy_s, seen.busy_s),
        mixed(before.bytes, seen.bytes),
    )


MOST = 1024
"""Names that are kept: those that were heard of last."""
TYPICAL_OF = 63
"""So many of the last ones say what is typical."""
LEAST = 3
"""Fewer say nothing."""


class Familiar:
    """Steps of jobs, by name."""

    def __init__(self) -> None:
        self._steps: OrderedDict[str, StepModel] = OrderedDict()
        self._typical: StepModel | None = None

    def learn(self, name: str, steps: StepModel) -> None:
        """So the steps of this job are, as it is known now."""
        self._steps[name] = steps
        self._steps.move_to_end(name)
        if len(self._steps) > MOST:
            self._steps.popitem(last=False)
        self._typical = None

    def guess(self, name: str) -> StepModel | None:
        """What a job's steps are before any were seen: as when it ran last, else what is typical;
        None: nobody can say."""
        return self._steps.get(name) or self._of_others()

    def _of_others(self) -> StepModel | None:
        """The median of each number."""
        if self._typical is None and len(self._steps) >= LEAST:
            names = list(self._steps)[-TYPICAL_OF:]
            known = [self._steps[name] for name in names]
            self._typical = StepModel(
                statistics.median(it.compute_s for it in known),
                statistics.median(it.overlap_s for it in known),
                statistics.median(it.bytes for it in known),
                statistics.median(it.lane_bytes_per_s for it in known),
                statistics.median(it.line_bytes_per_s for it in known),
                statistics.median(it.beside_bytes_per_s for it in known),
            )
        return self._typical
