"""Many jobs on one switch: every sum right, every death told, no slot left behind.

``INA_SOAK_S=180`` makes it three minutes, ``INA_SOAK_SEED`` replays a run's draws.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.selection import LONG
from tests.sharing.soak import Soak
from tests.worlds.processes.network import network

DURATION_S = float(os.environ.get("INA_SOAK_S", "60" if LONG else "3"))
SEED = int(os.environ.get("INA_SOAK_SEED", "1"))
JOBS = 20 if LONG else 8
LEASE_S = 6 if LONG else 2  # of 80 processes on two cores each has its turn in that time


@pytest.mark.timeout(DURATION_S + 400)
def test_jobs_that_come_go_and_die(tmp_path: Path) -> None:
    with network(tmp_path, f"[jobs]\nslots = 256\nlease_s = {LEASE_S}") as switch:
        tally = Soak(switch.controller, SEED, jobs=JOBS, duration_s=DURATION_S).run()
        print(f"seed {SEED}, {DURATION_S:g} s: {tally}")
        assert tally.problems == []
        assert tally.ended
        shown = switch.show_when_empty()
        assert {entry.table for entry in shown.entries} == {"own_addresses"}
        assert shown.slots_used == 0
