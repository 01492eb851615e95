"""TCP between the hosts of a job, through the same switch ports."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bmv2_tests import jobs
from bmv2_tests.iperf import Iperf
from bmv2_tests.network import running
from bmv2_tests.plans import star

HOSTS = 3


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="needs iperf3: apt-get install iperf3")
def test_tcp_and_sums_share_the_links(kind: str, tmp_path: Path) -> None:
    with running(star(HOSTS), kind, tmp_path) as network:
        first, second, _ = network.plan.hosts
        tcp = Iperf(network, first, second)
        jobs.start(network, jobs.plan_of("beside", HOSTS, steps=8, elems=6000)).finish()
        assert tcp.finish() > 1_000_000
