"""Metrics of process groups: by path, and from real workers with INA_METRICS."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as dist

from ina.host.metrics import served_address
from ina.metrics import MetricsServer
from ina.torch.metrics import GroupCollector
from tests.metrics.exported import FakeGroup
from tests.worlds.fakes.scrape import scrape
from tests.worlds.processes.launch import launch


def test_sums_by_path_and_a_lost_switch() -> None:
    collector = GroupCollector()
    whole, lost = FakeGroup(), FakeGroup(lost=True, rank=0)
    collector.groups.add(whole)
    collector.groups.add(lost)
    back = FakeGroup(lost=True, rank=2, returned_unix_s=1.8e9)
    collector.groups.add(back)
    with MetricsServer("127.0.0.1:0", [collector]) as server:
        found = scrape(server.address)
    of = {"job_name": "train", "rank": "1"}
    assert found.value("ina_torch_sums_total", **of, path="network") == 8
    for collective, count in {"all_gather": 6, "broadcast": 8, "barrier": 9}.items():
        assert found.value("ina_torch_moves_total", **of, collective=collective) == count
    assert found.value("ina_torch_sums_total", **of, path="gloo") == 3
    assert found.value("ina_torch_other_collectives_total", **of, collective="broadcast") == 4
    assert found.value("ina_torch_sparse_all_reduces_total", **of) == 3
    blocks = {"all": 300, "own": 20, "union": 40}
    for which, count in blocks.items():
        assert found.value("ina_torch_sparse_blocks_total", **of, which=which) == count
    assert found.value("ina_torch_switch_lost", **of) == 0
    assert found.value("ina_torch_switch_lost", job_name="train", rank="0") == 1
    assert found.value("ina_torch_switch_returns_total", job_name="train", rank="0") == 0
    assert found.value("ina_torch_switch_lost", job_name="train", rank="2") == 0
    assert found.value("ina_torch_switch_returns_total", job_name="train", rank="2") == 1


def served(rank: int, workers: int) -> tuple[float, float, float]:
    """What this rank's own endpoint has, by its own label."""
    dist.all_reduce(torch.ones(1000))
    dist.all_reduce(torch.ones(10), dist.ReduceOp.MAX)
    address = served_address()
    assert address is not None
    found = scrape(address)
    of = {"rank": str(rank)}
    return (
        found.value("ina_worker_reduced_bytes_total", **of),
        found.value("ina_torch_sums_total", **of, path="network"),
        found.value("ina_torch_sums_total", **of, path="gloo"),
    )


def test_each_worker_serves_its_own_group(tmp_path: Path) -> None:
    environ = {"INA_METRICS": "127.0.0.1:0", "INA_VALUES": "64"}
    assert launch(served, 2, tmp_path, environ=environ) == [(4000, 1, 1)] * 2
