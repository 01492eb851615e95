"""Hosts of several ranks below two leaves and a spine: each host's node adds up what they send."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from bmv2_tests import jobs
from bmv2_tests.network import Network, running
from bmv2_tests.plans import HostPlace, two_racks
from bmv2_tests.worker import FAILED
from ina.rpc.ranks import ranks_text

RANKS_AT = (2, 1, 1, 3, 1, 1)
"""By host: the first three are in one rack."""
ALL = sum(RANKS_AT)
PLAN = two_racks(3)
PLACES = tuple(
    place for place, ranks in zip(PLAN.hosts, RANKS_AT, strict=True) for _ in range(ranks)
)
"""By rank."""
STARTS_NODE = 4
"""The lowest rank of the host with three."""
_START_S, _NOTICE_S = 120.0, 60.0


def start(
    network: Network,
    name: str,
    steps: int,
    pause_s: float = 0.0,
    held: tuple[int, Path] | None = None,
) -> jobs.Job:
    plan = jobs.plan_of(name, ALL, steps=steps, elems=3000, pause_s=pause_s, held=held)
    return jobs.start_torch(network, plan, PLACES)


def shared() -> Iterator[tuple[HostPlace, list[int]]]:
    """Hosts of several ranks, and those."""
    for place, at in groupby(range(ALL), key=lambda rank: PLACES[rank]):
        if len(ranks := list(at)) > 1:
            yield place, ranks


def shown_with_counts(network: Network) -> dict[str, Any]:
    """Nodes of the one job by name, once the hosts' own have told what they count: that comes with
    heartbeats."""
    deadline_s = time.monotonic() + _NOTICE_S
    while True:
        shown = network.ina("fabric", "show", "--controller", network.controller)
        (job,) = shown["jobs"]
        nodes = {node["switch"]: node for node in job["nodes"]}
        of_hosts = [node for name, node in nodes.items() if name.startswith("host ")]
        if of_hosts and all(node["passed_down"] for node in of_hosts):
            return nodes
        assert time.monotonic() < deadline_s, nodes


@pytest.mark.timeout(400)
def test_each_host_sends_one_contribution(kind: str, tmp_path: Path) -> None:
    with running(PLAN, kind, tmp_path) as network:
        job = start(network, "shown", 6, held=(3, tmp_path / "go_on"))
        job.workers[0].expect("step 2 ", _START_S)
        nodes = shown_with_counts(network)
        (tmp_path / "go_on").touch()
        job.finish()
    for place, ranks in shared():
        (name,) = (it for it in nodes if it.startswith(f"host {place.address}:"))
        node, leaf = nodes[name], nodes[f"s{place.rack}"]
        assert (node["ranks"], node["parent"], node["unread"]) == (ranks, f"s{place.rack}", "")
        assert leaf["children"] == [name]
        assert node["contributions"] >= len(ranks) * node["results"] > 0
        said = f"rank {ranks[0]} adds up what {ranks_text(ranks)} of this host send"
        assert said in job.workers[ranks[0]].text()
    assert [nodes[leaf]["ranks"] for leaf in ("s1", "s2")] == [[2, 3], [7, 8]]
    for leaf in ("s1", "s2"):  # two ranks that are alone, and one node
        assert nodes[leaf]["contributions"] >= 3 * nodes[leaf]["results"] > 0


@pytest.mark.timeout(400)
@pytest.mark.skipif(shutil.which("nft") is None, reason="needs nft: apt-get install nftables")
def test_uplinks_that_lose(kind: str, tmp_path: Path) -> None:
    """Where switches are, only on the way out: what nftables drop as it comes, BMv2 has seen."""
    with running(PLAN, kind, tmp_path) as network:
        for leaf, uplink, _, _ in network.plan.trunks:
            network.lose(network.net[leaf], [f"{leaf}-eth{uplink}"], ["egress"])
        downlinks = [f"s3-eth{port}" for _, _, _, port in network.plan.trunks]
        network.lose(network.net["s3"], downlinks, ["egress"])
        for place, _ in shared():
            network.lose(network.node(place), ["eth0"], ["ingress", "egress"])
        stats = start(network, "lossy", 6).finish()
    assert all(one["retransmissions"] > 0 for one in stats)


@pytest.mark.timeout(400)
def test_the_rank_with_the_node_that_dies_is_named_with_those_below(
    kind: str, tmp_path: Path
) -> None:
    with running(PLAN, kind, tmp_path) as network:
        job = start(network, "lost", 4000, pause_s=0.05)
        job.workers[0].expect("step 3 ", _START_S)
        job.workers[STARTS_NODE].kill()
        pid = job.workers[STARTS_NODE].pid  # by shared memory it has no address
        for rank, worker in enumerate(job.workers):
            if rank == STARTS_NODE:
                continue
            assert worker.wait(_NOTICE_S) == FAILED, worker.text()
            said = rf"WorkerLostError: .*: rank {STARTS_NODE} \(s2, \S+ pid {pid}\) has died"
            assert re.search(said, worker.text()), worker.text()
            assert "; ranks 5, 6 sent to the node of their host, in its process" in worker.text()
