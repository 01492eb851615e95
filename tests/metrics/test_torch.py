"""Metrics of process groups: by path, and from real workers with INA_METRICS."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

from ina.host.metrics import served_address
from ina.metrics import MetricsServer
from ina.torch.metrics import GroupCollector
from ina.torch.stats import GroupStats
from tests.worlds.fakes.scrape import scrape
from tests.worlds.processes.launch import launch


@dataclass(eq=False)  # counted by what it is, as a group
class FakeGroup:
    lost: bool = False
    returned_unix_s: float = 0.0
    rank: int = 1

    def stats(self, *, with_switch: bool = True) -> GroupStats:
        assert not with_switch, "a scrape does not ask the switch"
        return GroupStats(
            job="train",
            rank=self.rank,
            world_size=2,
            controller="",
            network_all_reduces=5,
            network_reduce_scatters=2,
            network_elems=0,
            network_bytes=0,
            fallbacks=3,
            fallback_reasons={},
            other_collectives={"broadcast": 4},
            session={},
            switch=None,
            switch_loss={"returned_unix_s": self.returned_unix_s} if self.lost else None,
            switch_returns=int(self.returned_unix_s > 0),
        )


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
    assert found.value("ina_torch_sums_total", **of, path="network") == 7
    assert found.value("ina_torch_sums_total", **of, path="gloo") == 3
    assert found.value("ina_torch_other_collectives_total", **of, collective="broadcast") == 4
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
