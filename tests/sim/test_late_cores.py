"""Cores that wake late, and round trips above the timeout: what links of real machines do.

A network that only delays what it carries shows neither: on two cores a thread that sleeps is at
work a part of a millisecond after it was to be, and a window's pace, or its round trips, must not
make a rate of that.
"""

from __future__ import annotations

import pytest

from benchmarks import default_window
from ina.sim.reading import make
from ina.sim.report import Report
from ina.sim.run import Simulation
from tests.selection import LONG

ELEMS = 1 << 20


def star(window: str, late_us: float) -> Report:
    """Eight workers on token buckets of 1 Gbit/s, as ``ina bench allreduce --link 1gbit``."""
    awake = {"wake_us": 50, "wake_jitter_us": late_us, "trains": True}
    link = {"rate_gbit": 1, "wire_gap_bytes": 0, "burst_kib": 80, "delay_us": 0, "queue_kib": 1024}
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


@pytest.mark.parametrize("seed", range(1, 9) if LONG else [1])
def test_no_live_job_ends_where_round_trips_are_longer_than_timeouts(seed: int) -> None:
    """New packets have half of a pace; without that, those sent again have all of it."""
    document = make({**default_window.FAR, "congestion": {"algorithm": "ina"}})
    report = Simulation(document, seed).run()
    assert report.violations == []
    assert report.ended_unasked == []
    assert [(job.steps_done, job.ended) for job in report.jobs] == [(12, "")]
