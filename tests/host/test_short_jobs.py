"""Programs that have finished end: many short jobs on one busy core."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ina.controller.embedded import Embedded
from tests.selection import LONG

ROOT = Path(__file__).parents[2]
JOBS = 500 if LONG else 3


@pytest.mark.timeout(90 + 10 * JOBS)
def test_no_worker_of_many_short_jobs_stays() -> None:
    with Embedded(values=64, slots=8) as embedded:
        run = subprocess.run(
            [sys.executable, "-m", "tests.host.short_jobs", embedded.controller_addr, str(JOBS)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60 + 10 * JOBS,
        )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == {"jobs": JOBS, "failed": [], "stayed": []}, run.stderr
