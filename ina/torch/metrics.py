"""Process groups as Prometheus metrics: which path sums took, and whether the switch was lost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ina.host import SessionClosedError
from ina.host.metrics import COLLECTORS
from ina.metrics import Living
from ina.torch.stats import GroupStats


class Counted(Protocol):
    """What a process group is here."""

    def stats(self, *, with_switch: bool = True) -> GroupStats:
        """The counters so far."""


class GroupCollector(Collector):
    """The groups that live, by job and rank."""

    def __init__(self) -> None:
        self.groups: Living[Counted] = Living()

    def collect(self) -> Iterable[Metric]:
        """All families, with the labels ``job_name`` and ``rank``."""
        sums = CounterMetricFamily(
            "ina_torch_sums",
            "Tensors of all_reduce, reduce_scatter and reduce, by the path that summed them; of all"
            " collectives of the network's where it is Gloo.",
            labels=["job_name", "rank", "path"],
        )
        moves = CounterMetricFamily(
            "ina_torch_moves",
            "Collectives that move what they are given, and barriers, through the network.",
            labels=["job_name", "rank", "collective"],
        )
        others = CounterMetricFamily(
            "ina_torch_other_collectives",
            "Collectives that the network does not do, which went to the inner group.",
            labels=["job_name", "rank", "collective"],
        )
        lost = GaugeMetricFamily(
            "ina_torch_switch_lost",
            "1: the switch was lost, and the group goes on over Gloo.",
            labels=["job_name", "rank"],
        )
        returns = CounterMetricFamily(
            "ina_torch_switch_returns",
            "How often the group has gone back to the network after its switch was lost.",
            labels=["job_name", "rank"],
        )
        sparse = CounterMetricFamily(
            "ina_torch_sparse_all_reduces",
            "Tensors of which blocks, or rows, that are zero on all ranks were not sent.",
            labels=["job_name", "rank"],
        )
        blocks = CounterMetricFamily(
            "ina_torch_sparse_blocks",
            "Blocks, or rows, of those: all, own (not zero on this rank), union (on some rank).",
            labels=["job_name", "rank", "which"],
        )
        for stats in self._read():
            labels = [stats.job, str(stats.rank)]
            network = stats.network_all_reduces + stats.network_reduce_scatters
            sums.add_metric([*labels, "network"], network + stats.network_reduces)
            moves.add_metric([*labels, "all_gather"], stats.network_all_gathers)
            moves.add_metric([*labels, "broadcast"], stats.network_broadcasts)
            moves.add_metric([*labels, "barrier"], stats.network_barriers)
            sums.add_metric([*labels, "gloo"], stats.fallbacks)
            for collective, count in stats.other_collectives.items():
                others.add_metric([*labels, collective], count)
            is_away = stats.switch_loss is not None and not stats.switch_loss.get("returned_unix_s")
            lost.add_metric(labels, is_away)
            returns.add_metric(labels, stats.switch_returns)
            sparse.add_metric(labels, stats.sparse_all_reduces)
            blocks.add_metric([*labels, "all"], stats.sparse_blocks)
            blocks.add_metric([*labels, "own"], stats.sparse_own_blocks)
            blocks.add_metric([*labels, "union"], stats.sparse_union_blocks)
        yield from (sums, moves, others, lost, returns, sparse, blocks)

    def _read(self) -> list[GroupStats]:
        found = {}
        for group in self.groups:
            with contextlib.suppress(SessionClosedError):  # closed since
                stats = group.stats(with_switch=False)
                found[stats.job, stats.rank] = stats
        return list(found.values())


_collector = GroupCollector()
GROUPS = _collector.groups
"""Every group of this process that has not been destroyed."""
COLLECTORS.append(_collector)
