"""A host that reboots in the middle: its job fails clearly, and is started again."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from bmv2_tests import jobs
from bmv2_tests.network import prepare, running
from bmv2_tests.plans import star
from bmv2_tests.worker import FAILED

HOSTS = 3
AWAY_S = 1.0
_NOTICE_S = 60.0


def test_a_host_that_reboots(kind: str, tmp_path: Path) -> None:
    with running(star(HOSTS), kind, tmp_path) as network:
        plan = jobs.plan_of("rebooted", HOSTS, steps=200, elems=2000, pause_s=0.05)
        job = jobs.start(network, plan)
        victim = network.plan.hosts[1]
        node = network.node(victim)
        job.workers[1].expect("step 3 ", 60)

        job.workers[1].kill(signal.SIGKILL)
        for interface in ("eth0", "eth1"):  # both networks lose it at once
            node.cmd(f"ip link set dev {interface} down")
        for rank in (0, 2):
            assert job.workers[rank].wait(_NOTICE_S) == FAILED
            assert "WorkerLostError" in job.workers[rank].text()
            assert f"rank 1 ({victim.address}" in job.workers[rank].text()

        time.sleep(AWAY_S)
        for interface in ("eth0", "eth1"):
            node.cmd(f"ip link set dev {interface} up")
        prepare(network.net, victim)
        again = jobs.plan_of("rebooted", HOSTS, steps=4, elems=2000)
        jobs.start(network, again, log="-again").finish()
