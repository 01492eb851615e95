"""``ina bench lookups`` on small tables, as a user runs it."""

from __future__ import annotations

import json

import pytest

from ina.bench.lookups import LookupsOrder
from ina.embed.zipf import MLPERF_BAGS, MLPERF_ROWS
from tests.bench.command import bench

SMALL = ("--most-rows=50", "--dim=4", "--samples=16", "--queries=4", "--repeats=3")


def test_both_ways_read_the_same_and_what_is_spoilt_is_seen() -> None:
    ran = bench("lookups", "--workers=2", *SMALL, "--spoil=3", "--json")
    assert ran.code == 1, ran.err  # for what is spoilt
    rows = json.loads(ran.out)["rows"]
    assert [(row["phase"], row["way"]) for row in rows] == [
        ("training", "ina"),
        ("training", "gloo"),
        ("inference", "ina"),
        ("inference", "gloo"),
    ]
    for row in rows[::2]:  # three values in each checked sample of each rank
        assert row["wrong"] == 2 * 3 * row["samples"] > 0


@pytest.mark.parametrize(("bags", "ids"), [(False, 26), (True, sum(MLPERF_BAGS))])
def test_tables_are_mlperfs(bags: bool, ids: int) -> None:
    order = LookupsOrder(200_000, 64, 2048, 64, bags, 1.05, 1, 1.0, 0)
    assert len(order.tables) == len(MLPERF_ROWS) == 26
    assert sum(bag for _, bag in order.tables) == ids
    assert max(rows for rows, _ in order.tables) == 200_000


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("options", "most"), [((), 0.40), (("--bags",), 0.70)])
def test_bytes_on_a_workers_link(options: tuple[str, ...], most: float) -> None:
    """Of what all_to_all of sums has: counted, so the same on every machine but for resends."""
    case = ("--workers=8", "--link=1gbit", "--repeats=4", "--seconds=120", *options)
    ran = bench("lookups", *case, "--json")
    assert ran.code == 0, ran.err
    (row,) = (
        row
        for row in json.loads(ran.out)["rows"]
        if row["phase"] == "training" and row["way"] == "ina"
    )
    assert row["wrong"] == 0
    assert row["share"] <= most
