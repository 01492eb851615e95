"""What the benchmarks of all-reduces share: the columns, with their units, and how one runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from ina.bench import parse
from ina.bench.allreduce import AllReduceCase, AllReduceRow, label, measure
from ina.bench.testbed import Testbed
from ina.cli.bench.declare import Row
from ina.cli.bench.output import Steps
from ina.cli.common.columns import Column, ms, percent

LOST = "; lost: packets of all samples and ranks that were sent again for a loss"
TIME = "time: median of samples, each of the slowest rank; ±: between the quartiles"


def _over(row: Row) -> str:
    """What it went over, and whether one result went to several workers."""
    return f"{row['transport']}, mc" if row["multicast"] else row["transport"]


def _backend(row: Row) -> Any:
    return label(row["backend"], row["verify"], row["host_node"], row["wire"])


_COLUMNS = {
    it.title: it
    for it in (
        *(Column("n", "workers"), Column("link"), Column("uplinks", "uplink")),
        *(Column("backend", _backend), Column("over", _over), Column("size", "size_bytes")),
        *(Column("count"), Column("type"), Column("redop")),
        *(ms("time ms", "time_s", 3), ms("±", ("time_low_s", "time_high_s"), 3)),
        *(Column("algbw GB/s", "algbw_gb_s", 3), Column("busbw GB/s", "busbw_gb_s", 3)),
        *(Column("#wrong", "wrong"), Column("lost", "losses"), Column("resent", "retransmissions")),
        *(ms("limit ms", "limit_s", 3), percent("% of limit", "limit_share", 1)),
        *(Column("Gloo/this", "gain", 2), Column("off/this", "unverified", 2)),
        Column("32/this", "whole", 2),
        Column("without/this", "nodeless", 2),
        Column("limit without/this", "limit_gain", 2),
        Column("CPU s/GB", "cpu_s_per_gb", 2),
    )
}


def columns(*titles: str) -> Sequence[Column]:
    """Those, of an :class:`ina.bench.allreduce.AllReduceRow` and what else is known of it."""
    return [_COLUMNS[title] for title in titles]


def measured(
    bar: Steps,
    name: str,
    network: Callable[..., AbstractContextManager[Testbed]],
    sizes: Sequence[int],
    case: AllReduceCase,
) -> list[list[AllReduceRow]]:
    """The rows of each size, of one run of the workers there. ``name``: in what is told meanwhile.

    Raises InaError: a rank failed; the deadline passed.
    """
    found = []

    def on_rows(rows: list[AllReduceRow]) -> None:
        found.append(rows)
        times = [f"{_label(row)} {row.time_s * 1e3:.2f} ms" for row in rows]
        bar.done(f"{name}, {parse.size_text(rows[0].size_bytes)}: {', '.join(times)}")

    with network(progress=bar.say) as where:
        measure(where, sizes, case, on_rows)
    return found


def _label(row: AllReduceRow) -> str:
    return label(row.backend, row.verify, row.host_node, row.wire)
