"""ATP-like sharing, as a model: slots go to whoever has packets, the rest is summed at servers.

Each job has as many packets in flight as are of use to it. Where these are more than there are
lanes, each finds free what is its part of them, as hashing deals them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ina.sim.memory.outcome import Ended
from ina.sim.memory.trace import PAYLOAD_BYTES, ROUND_TRIP_S, TracedJob


def share(trace: Sequence[TracedJob], lanes: int) -> list[Ended]:
    """All jobs of a trace, on a switch of so many lanes."""
    models = {job.name: job.model(aggregator=True) for job in trace}
    coming, running = list(trace), dict[str, TracedJob]()
    left = {job.name: float(job.steps) for job in trace}
    now_s, ended = 0.0, list[Ended]()
    while coming or running:
        wanted = {name: _lanes(job) for name, job in running.items()}
        part = min(1.0, lanes / sum(wanted.values())) if wanted else 1.0
        steps_s = {
            name: _step_s(job, models[name].beside_bytes_per_s, wanted[name] * part)
            for name, job in running.items()
        }
        next_s, name = min(
            ((now_s + left[it] * step_s, it) for it, step_s in steps_s.items()),
            default=(math.inf, ""),
        )
        comes_s = coming[0].comes_s if coming else math.inf
        passed_s = min(next_s, comes_s) - now_s
        for it, step_s in steps_s.items():
            left[it] -= passed_s / step_s
        now_s += passed_s
        if comes_s < next_s:
            new = coming.pop(0)
            running[new.name] = new
            continue
        job = running.pop(name)
        took_s = now_s - job.comes_s
        ended.append(Ended(took_s, took_s / job.lasts_s, now_s > job.deadline_s, 0))
    return ended


def _lanes(job: TracedJob) -> float:
    """Of use to it."""
    model = job.model(aggregator=False)
    return model.bytes / model.overlap_s / (PAYLOAD_BYTES / ROUND_TRIP_S)


def _step_s(job: TracedJob, beside_bytes_s: float, lanes: float) -> float:
    model = job.model(aggregator=True)
    rate = min(model.line_bytes_per_s, beside_bytes_s + lanes * model.lane_bytes_per_s)
    return max(model.compute_s, model.bytes / rate)
