"""Two racks and a spine: each leaf sums for its rack, and all three switches route."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bmv2_tests import jobs
from bmv2_tests.iperf import Iperf
from bmv2_tests.network import Network, running
from bmv2_tests.topologies import HostPlace, two_racks

EACH = 2
INITIAL_TTL = 64


@pytest.mark.skipif(shutil.which("ping") is None, reason="needs ping: apt-get install iputils-ping")
def test_every_host_reaches_every_other(kind: str, tmp_path: Path) -> None:
    with running(two_racks(EACH), kind, tmp_path) as network:
        for source in network.plan.hosts:
            for sink in network.plan.hosts:
                if source is not sink:
                    hops = 0 if source.rack == sink.rack else 3  # leaf, spine, leaf
                    assert f"ttl={INITIAL_TTL - hops} " in ping(network, source, sink)


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="needs iperf3: apt-get install iperf3")
def test_each_rack_sums_beside_tcp_between_them(kind: str, tmp_path: Path) -> None:
    with running(two_racks(EACH), kind, tmp_path) as network:
        racks = [[p for p in network.plan.hosts if p.rack == rack] for rack in (1, 2)]
        tcp = Iperf(network, racks[0][0], racks[1][0])
        running_jobs = [
            jobs.start(network, jobs.plan_of(f"rack{i}", EACH, 6, 6000, seed=i), hosts)
            for i, hosts in enumerate(racks)
        ]
        for job in running_jobs:
            job.finish()
        assert tcp.finish() > 1_000_000


def ping(network: Network, source: HostPlace, sink: HostPlace) -> str:
    """What one ping says; the first may be lost while addresses are looked up."""
    said: str = network.node(source).cmd(f"ping -c 1 -w 5 {sink.address}")
    return said
