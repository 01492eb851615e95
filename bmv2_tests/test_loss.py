"""Packets that the switch or the link loses, and links that go down: every sum stays right."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from bmv2_tests import jobs
from bmv2_tests.network import Network, prepare, running
from bmv2_tests.plans import star

HOSTS = 3
DOWN_S = 2.0


def test_a_switch_that_drops(tmp_path: Path) -> None:
    with running(star(HOSTS), "soft", tmp_path, loss_rate=0.05) as network:
        stats = jobs.start(network, jobs.plan_of("dropped", HOSTS, steps=4, elems=8000)).finish()
    assert all(one["retransmissions"] > 0 for one in stats)


@pytest.mark.skipif(shutil.which("nft") is None, reason="needs nft: apt-get install nftables")
def test_links_that_lose(kind: str, tmp_path: Path) -> None:
    with running(star(HOSTS), kind, tmp_path) as network:
        for place in network.plan.hosts:
            network.lose(network.node(place), ["eth0"], ["ingress", "egress"])
        stats = jobs.start(network, jobs.plan_of("lossy", HOSTS, steps=4, elems=8000)).finish()
    assert all(one["retransmissions"] > 0 for one in stats)


@pytest.mark.parametrize("end", ["switch", "host"])
def test_a_link_that_goes_down_and_comes_back(kind: str, end: str, tmp_path: Path) -> None:
    """A job waits for a link that comes back soon, whichever end was down, and goes on."""
    with running(star(HOSTS), kind, tmp_path) as network:
        job = jobs.start(network, jobs.plan_of("down", HOSTS, steps=40, elems=3000, pause_s=0.05))
        job.workers[0].expect("step 3 ", 60)
        set_link(network, end, "down")
        before = job.workers[0].text()
        time.sleep(DOWN_S)
        between = job.workers[0].text()
        set_link(network, end, "up")
        assert between.count("step") <= before.count("step") + 1, "it went on without the link"
        stats = job.finish()
    assert any(one["retransmissions"] > 0 for one in stats)


def set_link(network: Network, end: str, status: str) -> None:
    """One end of the link of the second host."""
    place = network.plan.hosts[1]
    host = network.node(place)
    node, interface = (host, "eth0") if end == "host" else (network.switch, "s1-eth2")
    assert node.cmd(f"ip link set dev {interface} {status}") == ""
    if end == "host" and status == "up":
        prepare(network.net, place)  # the kernel forgets neighbours with the interface
