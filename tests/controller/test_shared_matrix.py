"""Exactness of mode ``shared``: jobs, claimable slots, workers, loss, and a switch that restarts.

The jobs of a case run at once, in one process; each sum is what NumPy's int32
adds up, on every rank.
"""

from __future__ import annotations

import itertools

import pytest

from tests.worlds.processes.sharing import Restart, run_jobs, services

pytestmark = pytest.mark.long

CASES = [
    (jobs, slots, workers)
    for jobs, slots, workers in itertools.product((1, 2, 4), (1, 2, 16, 512), (2, 8, 32))
    if jobs * workers <= 64  # threads of one process
] + [(4, 1, 32), (3, 16, 5)]


@pytest.mark.parametrize("loss", [0.0, 0.05])
@pytest.mark.parametrize(("jobs", "slots", "workers"), CASES)
def test_sums_are_exact(jobs: int, slots: int, workers: int, loss: float) -> None:
    with services(slots, loss=loss) as embedded:
        run_jobs(embedded, dict.fromkeys(range(jobs), workers), steps=2, elems=20_000 // workers)


@pytest.mark.parametrize("loss", [0.0, 0.05])
@pytest.mark.parametrize(("jobs", "slots", "workers"), CASES)
def test_sums_are_exact_though_the_switch_restarts(
    jobs: int, slots: int, workers: int, loss: float
) -> None:
    with services(slots, loss=loss) as embedded:
        restart = Restart(embedded)
        sizes = dict.fromkeys(range(jobs), workers)
        run_jobs(embedded, sizes, steps=3, elems=20_000 // workers, between=restart.between)
        restart.wait()
