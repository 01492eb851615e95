"""Cores that wake late, and round trips above the timeout: what links of real machines do.

A network that only delays what it carries shows neither: on two cores a thread that sleeps is at
work a part of a millisecond after it was to be, and a window's pace, or its round trips, must not
make a rate of that.
"""

from __future__ import annotations

from typing import Any

import pytest

from ina.sim.reading import make
from ina.sim.report import Report
from ina.sim.run import Simulation
from tests.selection import LONG

ELEMS = 1 << 20


def star(window: str, late_us: float) -> Report:
    """Eight workers on token buckets of 1 Gbit/s, as ``ina bench allreduce --link 1gbit``."""
    awake = {"wake_us": 50, "wake_jitter_us": late_us, "trains": True}
    link = {"rate_gbit": 1, "framing_bytes": 0, "burst_kib": 80, "delay_us": 0, "queue_kib": 1024}
    job = {"workers": 8, "steps": 3, "tensors": [{"elems": ELEMS}]}
    document = {
        **{"limit_s": 60, "values": 360, "topology": {"kind": "star", "hosts": 8}, "link": link},
        **{"host": {"packet_ns": 1000, **awake}, "switch": {"packet_ns": 300, **awake}},
        **{"congestion": {"algorithm": window}, "job": [job]},
    }
    return Simulation(make(document), 1).run()


def test_late_cores_do_not_halve_what_a_paced_window_reaches() -> None:
    """Beside `fixed`, which waits for none; the first step, in which its window grows, included."""
    least_s, mean_s = (star(window, 300).jobs[0].step_mean_s for window in ("fixed", "ina"))
    assert mean_s < 2 * least_s


STARVE: dict[str, Any] = {
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


@pytest.mark.parametrize("seed", range(1, 9) if LONG else [1])
def test_no_live_job_ends_where_round_trips_are_longer_than_timeouts(seed: int) -> None:
    """New packets have half of a pace; without that, those sent again have all of it."""
    document = make({**STARVE, "congestion": {"algorithm": "ina"}})
    report = Simulation(document, seed).run()
    assert report.violations == []
    assert report.ended_unasked == []
    assert [(job.steps_done, job.ended) for job in report.jobs] == [(12, "")]
