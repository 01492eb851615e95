"""``ina bench inference`` on small requests, as a user runs it."""

from __future__ import annotations

import json

import pytest

from tests.bench.command import bench

SMALL = ("--nodes=2", "--sizes=4", "--repeats=5", "--burst=5", "--rounds=1", "--turns=1")


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("plan", ["layers", "graph"])
def test_both_ways_answer_as_one_process_does(plan: str) -> None:
    pytest.importorskip("torch")
    report = json.loads(bench("inference", f"--plan={plan}", *SMALL, "--json").out)
    assert [row["way"] for row in report["rows"]] == ["ina", "gloo", "one hop"]
    assert report["wrong"] == 0
    assert all(row["time_s"] > 0 and row["rate"] > 0 for row in report["rows"])
    assert len(report["ratios"]) == 2
