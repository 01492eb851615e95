"""Two racks of three and a spine: all three switches sum a job over both racks, and route."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from bmv2_tests import jobs
from bmv2_tests.iperf import Iperf
from bmv2_tests.network import Network, running
from bmv2_tests.plans import HostPlace, two_racks
from bmv2_tests.worker import FAILED

EACH = 3
ALL = 2 * EACH
INITIAL_TTL = 64
DOWN_S = 2.0
_NOTICE_S = 60.0
SUMS = jobs.plan_of("wide", ALL, steps=4, elems=6000)


@pytest.fixture(scope="module")
def soft_digest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of the results of SUMS over soft switches."""
    with running(two_racks(EACH), "soft", tmp_path_factory.mktemp("soft")) as network:
        return jobs.start(network, SUMS).digest()


def test_six_hosts_get_the_exact_sums_and_the_soft_switchs_bits(
    kind: str, soft_digest: str, tmp_path: Path
) -> None:
    with running(two_racks(EACH), kind, tmp_path) as network:
        assert jobs.start(network, SUMS).digest() == soft_digest
        shown = network.ina("fabric", "show", "--controller", network.controller)
    assert {switch["slots_used"] for switch in shown["switches"]} == {0}


def test_each_switch_adds_up_what_is_below_it(kind: str, tmp_path: Path) -> None:
    with running(two_racks(EACH), kind, tmp_path) as network:
        plan = jobs.plan_of("shown", ALL, steps=6, elems=640, held=(3, tmp_path / "go_on"))
        job = jobs.start(network, plan)
        job.workers[0].expect("step 2 ", _NOTICE_S)
        (shown,) = network.ina("fabric", "show", "--controller", network.controller)["jobs"]
        (tmp_path / "go_on").touch()
        job.finish()
    assert [(it["switch"], it["parent"], it["ranks"], it["children"]) for it in shown["nodes"]] == [
        ("s3", "", [], ["s1", "s2"]),
        ("s1", "s3", [0, 1, 2], []),
        ("s2", "s3", [3, 4, 5], []),
    ]
    spine, *leaves = shown["nodes"]
    chunks = 2 * 640 // 64  # of the steps that were done by then, at least
    assert spine["results"] >= chunks
    assert spine["contributions"] >= 2 * chunks
    for leaf in leaves:
        assert leaf["contributions"] >= EACH * chunks
        assert leaf["passed_down"] >= chunks


@pytest.mark.skipif(shutil.which("nft") is None, reason="needs nft: apt-get install nftables")
def test_uplinks_and_links_that_lose(kind: str, tmp_path: Path) -> None:
    """Where switches are, only on the way out: what nftables drop as it comes, BMv2 has seen."""
    with running(two_racks(EACH), kind, tmp_path) as network:
        for leaf, uplink, _, _ in network.plan.trunks:
            network.lose(network.net[leaf], [f"{leaf}-eth{uplink}"], ["egress"])
        downlinks = [f"s3-eth{port}" for _, _, _, port in network.plan.trunks]
        network.lose(network.net["s3"], downlinks, ["egress"])
        for place in network.plan.hosts:
            network.lose(network.node(place), ["eth0"], ["ingress", "egress"])
        stats = jobs.start(network, SUMS).finish()
    assert all(one["retransmissions"] > 0 for one in stats)


def test_an_uplink_that_goes_down_and_comes_back(kind: str, tmp_path: Path) -> None:
    with running(two_racks(EACH), kind, tmp_path) as network:
        plan = jobs.plan_of("down", ALL, steps=40, elems=1000, pause_s=0.05)
        job = jobs.start(network, plan)
        job.workers[0].expect("step 3 ", _NOTICE_S)
        spine = network.net["s3"]
        assert spine.cmd("ip link set dev s3-eth1 down") == ""
        time.sleep(DOWN_S)
        assert spine.cmd("ip link set dev s3-eth1 up") == ""
        stats = job.finish()
    assert any(one["retransmissions"] > 0 for one in stats)


def test_a_spine_that_restarts_ends_what_it_sums_and_nothing_else(
    kind: str, tmp_path: Path
) -> None:
    with running(two_racks(EACH), kind, tmp_path) as network:
        near = jobs.plan_of("near", EACH, steps=100, elems=500, pause_s=0.05, seed=2)
        wide = jobs.plan_of("wide", ALL, steps=1000, elems=500, pause_s=0.05)
        undisturbed = jobs.start(network, near, network.plan.rack(1))
        job = jobs.start(network, wide)
        job.workers[0].expect("step 3 ", _NOTICE_S)
        network.net["s3"].restart()
        for worker in job.workers:
            assert worker.wait(_NOTICE_S) == FAILED
            assert "SwitchLostError" in worker.text()
            assert "switch 's3' has lost its registers" in worker.text()
        jobs.start(network, SUMS, log="-again").finish()
        undisturbed.finish()


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
    """A job in one rack is summed there."""
    with running(two_racks(EACH), kind, tmp_path) as network:
        racks = [network.plan.rack(rack) for rack in (1, 2)]
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
