"""One rank of several jobs on one switch: rank 0 of all prints a JSON line a round.

All ranks of all jobs are in one more job, of a few slots, which is their barrier and brings what
they counted to rank 0. No torch: a step is a wait, as long as a job computes, and one sum.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ina.bench.cpu import machine_s
from ina.bench.gathering import Gathering, joined
from ina.bench.job_counters import Summed, await_connected, summed
from ina.bench.shared_star import PASSED, QUEUED
from ina.bench.testbed import asked_of
from ina.host import Session

_MODES = {"shared": "shared", "static": "pool", "queued": "pool", "aggregator": "shared"}
_TENANTS = {"queued": QUEUED, "aggregator": PASSED}
_NOTHING = Summed(0, 0, 0, 0)
_COUNTS = ("retransmissions", "losses", "spurious_resends", "probes")


@dataclass(frozen=True)
class SharingOrder:
    """What the ranks are asked for."""

    jobs: int
    elems: int
    steps: int
    """Of a job, in a round."""
    rounds: int
    slots: int
    seed: int
    spoil: int
    compute_s: float
    """On average, of a step."""
    ways: Sequence[str]


@dataclass(frozen=True)
class SharedRun:
    """What all ranks of all jobs did the same way at a time."""

    way: str
    seconds: float
    """From the common beginning to the last job's end."""
    job_s: list[float]
    """The same to each job's end."""
    busy: float
    """Share of this machine's cores that were."""
    wrong: int
    resends: int
    losses: int
    spurious_resends: int
    probes: int
    summed: int
    """Packets added up at the switch, of ``came``; these and the next of mode ``shared``."""
    came: int
    sums: int
    got: int
    """Packets that came to the aggregator for them."""


@dataclass(frozen=True)
class Steps:
    """Of one rank of one job."""

    elems: int
    pauses_s: list[float]
    rank: int
    workers: int
    spoil: int
    """So many sums are made wrong, to see that it is noticed."""

    def run(self, session: Session) -> tuple[float, int]:
        """Computes and sums in turns; when it was done (monotonic), how many values were wrong."""
        base = np.arange(self.elems, dtype=np.int32) % 40503
        own, result = base + self.rank, np.empty(self.elems, np.int32)
        wanted = base * self.workers + self.workers * (self.workers - 1) // 2
        wrong = 0
        for step, pause_s in enumerate(self.pauses_s):
            ends_s = time.monotonic() + pause_s
            if step:
                wrong += int(np.count_nonzero(result != wanted))
            own += 1  # another tensor each step; it wraps, as sums do
            wanted += self.workers
            time.sleep(max(0.0, ends_s - time.monotonic()))
            session.all_reduce(own, out=result)
            if step < self.spoil:
                result[0] += 1
        done_s = time.monotonic()
        return done_s, wrong + int(np.count_nonzero(result != wanted))


def pauses_s(seed: int, number: int, job: int, steps: int, compute_s: float) -> list[float]:
    """How long each step of a job computes, in one round: the same in all ways, on all ranks.

    Drawn from half to one and a half of ``compute_s``; the first one from nothing to twice that, so
    that jobs do not begin in step.
    """
    random = np.random.default_rng([seed, number, job])
    found = random.uniform(0.5, 1.5, steps) * compute_s
    found[0] = random.uniform(0.0, 2.0) * compute_s
    return [float(it) for it in found]


class Jobs:
    """All jobs, as one rank of one of them sees them."""

    def __init__(self, asked: SharingOrder, everyone: Gathering) -> None:
        self._asked = asked
        self._everyone = everyone
        self._workers = everyone.workers // asked.jobs
        self._job, self._rank = divmod(everyone.rank, self._workers)

    def round(self, number: int, way: str) -> SharedRun:
        """All jobs from their first step to their last one."""
        pauses = pauses_s(
            *(self._asked.seed, number, self._job),
            *(self._asked.steps, self._asked.compute_s),
        )
        spoil = self._asked.spoil if self._everyone.rank == 0 else 0
        steps = Steps(self._asked.elems, pauses, self._rank, self._workers, spoil)
        run = self._one_by_one if way == "queued" else self._at_once
        busy_s, all_s = machine_s()
        mine = run(way, steps)
        rows = self._everyone.gather(mine)
        busy_s, all_s = (now - then for now, then in zip(machine_s(), (busy_s, all_s), strict=True))
        done_us, *counts = rows.T
        job_s = done_us.reshape(self._asked.jobs, self._workers).max(axis=1) / 1e6
        return SharedRun(
            way,
            float(job_s.max()),
            job_s.tolist(),
            busy_s / all_s,
            *(int(column.sum()) for column in counts),
        )

    def _one_by_one(self, way: str, steps: Steps) -> list[int]:
        """Who is first has the whole pool until it is done; the others wait for it to leave."""
        self._everyone.wait()
        began_s = time.monotonic()
        with self._join(way, self._asked.slots) as session:
            done_s, wrong = steps.run(session)
            counts = _counts(session)
        return [_us(done_s - began_s), wrong, *counts, *vars(_NOTHING).values()]

    def _at_once(self, way: str, steps: Steps) -> list[int]:
        is_shared = _MODES[way] == "shared"
        slots = self._asked.slots
        # At the aggregator, where a lane has two of them: as many lanes as there are shared slots.
        slots = 2 * slots if is_shared else slots // self._asked.jobs // 2 * 2
        with self._join(way, slots) as session:
            self._everyone.wait()
            began_s = time.monotonic()
            done_s, wrong = steps.run(session)
            counts = _counts(session)
            self._everyone.wait()
            at = _NOTHING
            if is_shared and self._rank == 0:
                at = summed(os.environ["INA_CONTROLLER"], self._name(way))
        return [_us(done_s - began_s), wrong, *counts, *vars(at).values()]

    def _join(self, way: str, slots: int) -> Session:
        return joined(
            *(self._name(way), self._rank, self._workers, slots),
            mode=_MODES[way],
            tenant=_TENANTS.get(way, ""),
        )

    def _name(self, way: str) -> str:
        return f"{way}-{self._job}"


def _counts(session: Session) -> list[int]:
    stats = session.stats()
    return [getattr(stats, name) for name in _COUNTS]


def _us(seconds: float) -> int:
    return round(1e6 * seconds)


def main() -> None:
    """Runs all rounds, each way in turn."""
    asked = asked_of(SharingOrder)
    with Gathering.of_all() as everyone:
        if everyone.rank == 0:
            await_connected(os.environ["INA_CONTROLLER"])
        jobs = Jobs(asked, everyone)
        for number in range(asked.rounds):
            for way in asked.ways:
                everyone.tell(jobs.round(number, way))


if __name__ == "__main__":
    main()
