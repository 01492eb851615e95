"""Jobs that come and go, by chance: what memory policies are compared on."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ina.controller.memory.demand import StepModel
from ina.sim.errors import ScenarioError

LINE_BYTES_S = 100e9 / 8
"""Of a worker's link: 100 Gbit/s."""
ROUND_TRIP_S = 20e-6
PAYLOAD_BYTES = 256
"""Of a packet: 64 values. A link at its rate has 977 packets in flight."""
WORKERS = (4, 8, 8, 16, 24)
COMPUTE_S = 0.2
"""Of a step."""
USEFUL_LANES, USEFUL_SPREAD, MOST_LANES = 300.0, 0.7, 977.0
"""Packets in flight with which communication hides behind computation: median and sigma of their
logarithm; the mean is about 350."""
LASTS_S, LASTS_SPREAD, LONGEST_S = 300.0, 1.0, 5000.0
"""How long jobs take that have all the slots that are of use to them: the same."""
LEAST_SLACK, MORE_SLACK = 1.2, 0.85
"""A job's deadline is so many times as late as it could end: the least, and the mean of what is
added to that, exponentially distributed."""


@dataclass(frozen=True)
class TracedJob:
    """One job of a trace."""

    name: str
    workers: int
    comes_s: float
    steps: int
    bytes: float
    """A worker sends, a step."""
    lasts_s: float
    """With all the slots that are of use to it."""
    deadline_s: float
    """When it is to have ended, on the clock of ``comes_s``."""

    def model(self, *, aggregator: bool) -> StepModel:
        """Its steps. With an aggregator, what finds no slot is summed there: by n workers' links,
        as in ATP; without, slots alone carry it, as in mode ``pool``."""
        share = (self.workers - 1) / self.workers if aggregator else 1.0
        return StepModel(
            COMPUTE_S,
            COMPUTE_S,
            self.bytes,
            share * PAYLOAD_BYTES / ROUND_TRIP_S,
            LINE_BYTES_S,
            LINE_BYTES_S / self.workers if aggregator else 0.0,
        )


def draw_trace(seed: int, jobs: int, offered: float) -> list[TracedJob]:
    """``offered``: how many would run at a time if each had all that is of use to it.

    Raises :class:`ScenarioError`.
    """
    if jobs < 1 or not offered > 0:
        raise ScenarioError(f"a trace of {jobs} jobs, {offered:g} at a time: want more than 0")
    chance = random.Random(seed)
    sizes = []
    for _ in range(jobs):
        lanes = min(MOST_LANES, chance.lognormvariate(math.log(USEFUL_LANES), USEFUL_SPREAD))
        lasts_s = min(LONGEST_S, chance.lognormvariate(math.log(LASTS_S), LASTS_SPREAD))
        slack = LEAST_SLACK + chance.expovariate(1 / MORE_SLACK)
        sizes.append((chance.choice(WORKERS), lanes, max(1, round(lasts_s / COMPUTE_S)), slack))
    mean_s = statistics.mean(steps for _, _, steps, _ in sizes) * COMPUTE_S
    found, now_s = [], 0.0
    for number, (workers, lanes, steps, slack) in enumerate(sizes):
        now_s += chance.expovariate(offered / mean_s)
        sent_bytes = lanes * PAYLOAD_BYTES / ROUND_TRIP_S * COMPUTE_S
        lasts_s = steps * COMPUTE_S
        deadline_s = now_s + slack * lasts_s
        found.append(
            TracedJob(f"j{number}", workers, now_s, steps, sent_bytes, lasts_s, deadline_s)
        )
    return found


def mean_useful_lanes(trace: Sequence[TracedJob]) -> float:
    """Packets in flight of a job with which its communication hides."""
    lane_bytes = PAYLOAD_BYTES / ROUND_TRIP_S * COMPUTE_S
    return statistics.mean(job.bytes / lane_bytes for job in trace)
