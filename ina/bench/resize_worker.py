"""One rank of a job that sums without a pause while its slots are changed.

Rank 0 asks the controller for the change, and prints a JSON line a trial.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from dataclasses import dataclass

import numpy as np

from ina.bench.gathering import Gathering, joined
from ina.bench.job_counters import resize, show
from ina.bench.stream import Stream
from ina.bench.testbed import asked_of
from ina.errors import InaError


@dataclass(frozen=True)
class ResizeCase:
    """What is the same in all trials, and what the ranks are asked for."""

    elems: int
    slots: int
    """Of the job, both versions; some kinds have more."""
    trials: int


@dataclass(frozen=True)
class Kind:
    """Slots before and after, in those of the case, and so many more after."""

    before: int
    after: int
    more: int = 0


KINDS = {
    "none": Kind(1, 1),
    "grow": Kind(1, 2),
    "shrink": Kind(2, 1),
    "move": Kind(1, 1, more=2),
    "in place": Kind(4, 4, more=2),
}
"""``move``: the window, which is a power of two, stays. ``in place``: there is no room for both."""
POOL = 6
"""Slots of the switch that are not shared, in those of the case."""
_DEPTH = 4
"""Sums in flight."""
_LONE = 21
"""Packets, one at a time, that tell the round trip."""
_CALM_S = 0.5
"""Before the change, and after it."""
SETTLE_S = 0.2
"""After the change, until the calm: old slots are given back, windows grow."""
_CHANGE_S = 30.0
_POLL_S = 0.005


@dataclass(frozen=True)
class Trial:
    """As rank 0 saw it, by one clock, seconds."""

    kind: str
    done_s: list[float]
    """When each sum was."""
    asked_s: float
    """The change."""
    changed_s: float
    """When it was known to be over."""
    in_place: bool
    round_trip_s: float
    """Of a lone packet, all that wake up included; median."""
    window: int
    wrong: int
    """Sums of all ranks."""


class Resize(threading.Thread):
    """Asks for other slots after a while, and waits until the job has them."""

    def __init__(self, controller: str, job: str, slots: int) -> None:
        """``slots`` 0: nothing is asked for, and it is over at once."""
        super().__init__(name="change", daemon=True)
        self._controller, self._job, self._slots = controller, job, slots
        self.asked_s = self.changed_s = 0.0
        self.in_place = False
        self.failed: BaseException | None = None

    def run(self) -> None:
        """As a thread: it lives as long as the trial."""
        time.sleep(_CALM_S)
        self.asked_s = time.monotonic()
        try:
            if self._slots:
                self._change()
        except BaseException as error:
            self.failed = error
        self.changed_s = time.monotonic()
        time.sleep(SETTLE_S + _CALM_S)

    def _change(self) -> None:
        job = resize(self._controller, self._job, self._slots)
        self.in_place = job.remapping.in_place
        while job.HasField("remapping"):
            if time.monotonic() - self.asked_s > _CHANGE_S:
                raise InaError(f"bench resize: {job.remapping.stage} after {_CHANGE_S:g} s")
            time.sleep(_POLL_S)
            job = show(self._controller, self._job).job
        if job.slots != self._slots:
            raise InaError(f"bench resize: {job.slots} slots, and {self._slots} were asked for")


def trial(name: str, asked: ResizeCase, everyone: Gathering, number: int) -> Trial:
    """One job, whose slots change once."""
    kind = KINDS[name]
    job = f"{name.replace(' ', '-')}-{number}"
    before = kind.before * asked.slots
    with joined(job, everyone.rank, everyone.workers, before) as session:
        lone = np.ones(1, np.int32)
        round_trips_s = []
        for _ in range(_LONE):
            began_s = time.monotonic()
            session.all_reduce(lone)
            round_trips_s.append(time.monotonic() - began_s)
        after = 0 if name == "none" else kind.after * asked.slots + kind.more
        change = Resize(os.environ["INA_CONTROLLER"], job, after)
        stream = Stream(asked.elems, everyone.rank, everyone.workers, _DEPTH)
        everyone.wait()
        if everyone.rank == 0:
            change.start()
        stream.run(session, change.is_alive)
        window = session.stats().in_flight_limit
    if change.failed is not None:
        raise change.failed
    return Trial(
        kind=name,
        done_s=[done_s for _, done_s in stream.sums],
        asked_s=change.asked_s,
        changed_s=change.changed_s,
        in_place=change.in_place,
        round_trip_s=statistics.median(round_trips_s),
        window=window,
        wrong=int(everyone.gather([stream.wrong]).sum()),
    )


def main() -> None:
    """All trials, each kind in turn."""
    asked = asked_of(ResizeCase)
    with Gathering.of_all() as everyone:
        for number in range(asked.trials):
            for kind in KINDS:
                everyone.tell(trial(kind, asked, everyone, number))


if __name__ == "__main__":
    main()
