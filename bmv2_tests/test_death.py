"""``kill -9`` of each process of a job over two racks, in hosts and on switches of their own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bmv2_tests import jobs
from bmv2_tests.network import running
from bmv2_tests.plans import two_racks
from bmv2_tests.worker import FAILED

EACH = 2
ALL = 2 * EACH
VICTIM_RANK = 3
_NOTICE_S = 60.0


@pytest.mark.parametrize("victim", ["s1", "s3"])
def test_a_switch_that_stays_away_is_named_to_every_rank(
    kind: str, victim: str, tmp_path: Path
) -> None:
    """Nobody says that its port is closed, as where it is a process beside the workers."""
    with running(two_racks(EACH), kind, tmp_path) as network:
        job = jobs.start(network, jobs.plan_of("lost", ALL, 4000, 500, pause_s=0.05))
        job.workers[0].expect("step 3 ", _NOTICE_S)
        network.net[victim].process.kill()
        for worker in job.workers:
            assert worker.wait(_NOTICE_S) == FAILED
            said = f"SwitchLostError: .*: switch '{victim}' is lost: the controller has not reached"
            assert re.search(said, worker.text()), worker.text()


def test_a_rank_is_named_with_its_rack(kind: str, tmp_path: Path) -> None:
    with running(two_racks(EACH), kind, tmp_path) as network:
        job = jobs.start(network, jobs.plan_of("lost", ALL, 4000, 500, pause_s=0.05))
        job.workers[0].expect("step 3 ", _NOTICE_S)
        job.workers[VICTIM_RANK].kill()
        place = network.plan.hosts[VICTIM_RANK]
        for rank in range(VICTIM_RANK):
            assert job.workers[rank].wait(_NOTICE_S) == FAILED
            said = rf"WorkerLostError: .*: rank {VICTIM_RANK} \(s2, {place.address}:\d+\) has died"
            assert re.search(said, job.workers[rank].text()), job.workers[rank].text()


def test_a_controller_is_not_missed(kind: str, tmp_path: Path) -> None:
    with running(two_racks(EACH), kind, tmp_path) as network:
        job = jobs.start(
            network, jobs.plan_of("goes-on", ALL, 20, 500, held=(4, tmp_path / "go_on"))
        )
        job.workers[0].expect("step 3 ", _NOTICE_S)
        (controller,) = (it for it in network.processes if it.log.name == "controller.log")
        controller.kill()
        (tmp_path / "go_on").touch()
        job.finish()
