"""Jobs that train as fluids: compute, then send at max-min fair rates beside others. Pure.

No packets. What a job's stripes load of a resource is in proportion to its rate, so a rate is all
that a job has. Time goes from one event to the next: a job ends its computing, or its sending.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ina.controller.routing.judge import Judgement, fair_rates
from ina.controller.routing.network import Floats


def step_seconds(found: Judgement, steps: int, *, seed: int = 0) -> Mapping[str, float]:
    """By job, the mean time of a step over ``steps`` of them; jobs begin within a step's computing
    of one another, drawn by ``seed``, and go on until all have had theirs."""
    names = [it.name for it in found.demands]
    use = found.seconds_a_byte()  # (jobs, resources)
    sizes = np.array([it.step_bytes for it in found.demands])
    compute = np.array([it.compute_s for it in found.demands])
    rng = np.random.default_rng(seed)
    ready = rng.uniform(0.0, 1.0, len(names)) * compute  # when each begins to send
    left: Floats = np.zeros(len(names))
    began, took, done = ready - compute, np.zeros(len(names)), np.zeros(len(names), dtype=np.int64)
    now = 0.0
    sends = np.zeros(len(names), dtype=np.bool_)
    while (done < steps).any():
        rates = np.zeros(len(names))
        if sends.any():
            rates[sends] = fair_rates(use[sends])
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.where(sends, now + np.where(rates > 0, left / rates, np.inf), ready)
        after = float(ends.min())
        left = np.where(sends, left - rates * (after - now), left)
        now = after
        for job in np.flatnonzero(ends <= now * (1 + 1e-12) + 1e-15):
            if sends[job]:
                sends[job] = False
                if done[job] < steps:
                    took[job] += now - began[job]
                    done[job] += 1
                began[job], ready[job] = now, now + compute[job]
            else:
                sends[job], left[job], ready[job] = True, sizes[job], np.inf
    return dict(zip(names, (took / steps).tolist(), strict=True))
