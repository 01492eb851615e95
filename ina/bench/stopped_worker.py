"""One rank of two jobs that share slots, of which one is stopped for a while by SIGSTOP.

Ranks of the first half are the neighbour, those of the other half the job that stops. Rank 0 stops
it and lets it go on, and prints a JSON line a trial.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass, field

from ina.bench.gathering import Gathering, joined
from ina.bench.job_counters import nodes_of
from ina.bench.stream import Stream
from ina.bench.testbed import asked_of
from ina.host import Session

NEIGHBOUR, STOPS = "neighbour", "stops"
WHO = ("one", "all")
"""Whether one worker of the job is stopped, and the others wait for it; or all are."""
_POLL_S = 0.005


@dataclass(frozen=True)
class StoppedOrder:
    """What the ranks are asked for."""

    elems: int
    slots: int
    trials: int
    calm_s: float
    """Before the stop."""
    stop_s: float
    """How long it lasts."""


@dataclass(frozen=True)
class Trial:
    """As rank 0 saw it; times are seconds since the stop."""

    who: str
    sums: list[tuple[float, float]]
    """Of the neighbour: when each began, and how long it took."""
    collisions: list[tuple[float, int]]
    """When it was asked, and how many packets of the neighbour had found a slot taken by then."""
    wrong: int
    """Sums of both jobs, of all ranks."""


@dataclass
class Collisions:
    """Asks for the neighbour's, again and again, from a thread of its own."""

    controller: str
    job: str
    seen: list[tuple[float, int]] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Begin."""
        self._thread = threading.Thread(target=self._run, name="collisions", daemon=True)
        self._thread.start()

    def end(self) -> list[tuple[float, int]]:
        """What was seen, by the monotonic clock."""
        self._ended.set()
        self._thread.join()
        return self.seen

    def _run(self) -> None:
        while not self._ended.wait(_POLL_S):
            asked_s = time.monotonic()
            _, switch = nodes_of(self.controller, self.job)
            self.seen.append((asked_s, switch.collisions))


class Stopper:
    """Stops processes, and lets them go on: asked before each sum of the neighbour."""

    def __init__(self, calm_s: float, stop_s: float, pids: list[int], told: int) -> None:
        self._now = [(calm_s, self._stop), (calm_s + stop_s, self._go_on)]
        self._began_s = time.monotonic()
        self._pids = pids
        self._told = told
        self.stopped_s = 0.0

    def __call__(self) -> bool:
        """Whether there is something left to do."""
        if self._now and time.monotonic() - self._began_s >= self._now[0][0]:
            self._now.pop(0)[1]()
        return bool(self._now)

    def _stop(self) -> None:
        self.stopped_s = time.monotonic()
        for pid in self._pids:
            os.kill(pid, signal.SIGSTOP)

    def _go_on(self) -> None:
        for pid in self._pids:
            os.kill(pid, signal.SIGCONT)
        os.kill(self._told, signal.SIGUSR1)

    def end(self) -> None:
        """Nobody must stay stopped, whatever happens."""
        self._now.clear()
        for pid in self._pids:
            os.kill(pid, signal.SIGCONT)


def trial(who: str, asked: StoppedOrder, everyone: Gathering, number: int) -> Trial:
    """One job is stopped once."""
    workers = everyone.workers // 2
    stops, rank = divmod(everyone.rank, workers)
    name = f"{STOPS if stops else NEIGHBOUR}-{who}-{number}"
    told = threading.Event()
    if stops:
        signal.signal(signal.SIGUSR1, lambda *_: told.set())
    pids = everyone.gather([os.getpid()])[workers:, 0].tolist()
    found = Trial(who, [], [], 0)
    with joined(name, rank, workers, 2 * asked.slots, mode="shared") as session:
        stream = Stream(asked.elems, rank, workers)
        everyone.wait()
        if everyone.rank == 0:
            found = _watch(who, asked, session, stream, name, pids)
        elif stops:
            stream.run(session, lambda: not told.is_set())
        else:
            stream.run(session, lambda: False)
        everyone.wait()  # the slots of a job that has left are free
    wrong = int(everyone.gather([stream.wrong]).sum())
    return Trial(found.who, found.sums, found.collisions, wrong)


def _watch(
    who: str,
    asked: StoppedOrder,
    session: Session,
    stream: Stream,
    name: str,
    pids: list[int],
) -> Trial:
    stopped = pids[-1:] if who == "one" else pids
    collisions = Collisions(os.environ["INA_CONTROLLER"], name)
    stopper = Stopper(asked.calm_s, asked.stop_s, stopped, pids[0])
    try:
        stream.run(session, stopper)
    finally:
        stopper.end()
        seen = collisions.end()
    at_s = stopper.stopped_s
    sums = [(began_s - at_s, done_s - began_s) for began_s, done_s in stream.sums]
    return Trial(who, sums, [(asked_s - at_s, count) for asked_s, count in seen], 0)


def main() -> None:
    """All trials."""
    asked = asked_of(StoppedOrder)
    with Gathering.of_all() as everyone:
        for number in range(asked.trials):
            for who in WHO:
                everyone.tell(trial(who, asked, everyone, number))


if __name__ == "__main__":
    main()
