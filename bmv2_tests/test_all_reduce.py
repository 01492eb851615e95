"""Sums over real hosts: integers exactly, floats within their bound, the same bits everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from bmv2_tests import jobs
from bmv2_tests.network import running
from bmv2_tests.plans import star


@pytest.mark.parametrize("hosts", [2, 4, 8])
def test_every_host_gets_the_exact_sum(kind: str, hosts: int, tmp_path: Path) -> None:
    with running(star(hosts), kind, tmp_path) as network:
        stats = jobs.start(network, jobs.plan_of("exact", hosts, steps=4, elems=6000)).finish()
        chunks = {one["chunks_done"] for one in stats}
        assert len(chunks) == 1
        shown = network.ina("switch", "show", "--controller", network.controller)
    # The job has left, what the switch forwards besides has not.
    assert {entry["table"] for entry in shown["entries"]} == {
        "own_addresses",
        "dmac",
        "multicast group",
    }
    assert all(one["refused_results"] == 0 for one in stats)
