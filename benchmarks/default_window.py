"""What the default window must do to be it: full links, and no live job that ends.

On links that token buckets shape a job of 2, 4 and 8 workers holds FLOOR of the wire with 64 MiB;
in the virtual network no job of living ranks ends where round trips are longer than timeouts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from ina.bench.report import Ratio
from ina.sim.reading import make
from ina.sim.run import Simulation

FLOOR = 0.98
RUNS = 5
SHAPED = ("allreduce", "--link=1gbit", "--workers=2,4,8", "--sizes=64M", "--repeats=5")
SEEDS = range(1, 9)
FAR = {
    "limit_s": 4000,
    "topology": {"kind": "racks", "racks": [3, 3]},
    "link": {
        **{"rate_gbit": 1, "delay_us": 20_000, "jitter_us": 400_000, "queue_kib": 512},
        **{"loss": 0.05, "duplication": 0.1, "reordering": 0.2, "reordering_us": 1_000_000},
    },
    "job": [
        {
            **{"workers": 5, "steps": 12, "compute_ms": 1},
            "tensors": [{"elems": 20_000}, {"elems": 700, "dtype": "int32"}, {"elems": 257}],
        }
    ],
}
"""Up to 2 s a round trip and more; no packet is waited for longer than 0.2 s."""


Measure = Callable[[Sequence[str]], list[Ratio]]


def shares(measure: Measure, options: Sequence[str]) -> list[tuple[str, float]]:
    """Of the wire, by name: what a window holds."""
    ratios = measure((*SHAPED, *options))
    return [(it.name, it.value) for it in ratios if it.name.endswith("ina/limit")]


def broken(measure: Measure) -> Iterator[str]:
    """What does not hold, a line each. ``measure``: the ratios of one ``ina bench``."""
    if os.geteuid() != 0:
        yield "the wire was not measured: shaped links need root"
    else:
        for run in range(1, RUNS + 1):
            below = {name: value for name, value in shares(measure, ()) if value < FLOOR}
            # What no window gets is not for want of one: cores, or the machine's other tenants.
            peer = dict(shares(measure, ("--window=adaptive",)) if below else ())
            for name, value in below.items():
                other = f"`adaptive` had {peer[name]:.3f} just after"
                yield f"run {run}: {name} {value:.3f}, at least {FLOOR}; {other}"
    for seed in SEEDS:
        report = Simulation(make(FAR), seed).run()
        for job in report.ended_unasked:
            yield f"far links, seed {seed}: job {job.name} ended: {job.ended}"
