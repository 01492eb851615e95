"""``ina bench rounding``: the ways, and that they are as far off as they should be."""

from __future__ import annotations

import json

import pytest

from ina.bench import rounding
from ina.cli.main import run


def test_all_ways_that_so_many_workers_may_take(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "rounding", "--workers=8,32", "--elems=20000", "--seeds=1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    errors = {(row["workers"], row["way"]): row["error"] for row in rows}
    assert [way for workers, way in errors if workers == 32] == [
        "bf16",
        "32",
        "16",
        "16-stochastic",
    ]
    of_8 = {way: error for (workers, way), error in errors.items() if workers == 8}
    assert list(of_8) == ["bf16", "32", "16", "16-stochastic", "8", "8-stochastic", "8 turned"]
    assert of_8["32"] < 1e-12
    assert of_8["16"] < 2 * of_8["bf16"]
    assert of_8["16"] < of_8["16-stochastic"] < 4 * of_8["16"]
    assert of_8["8 turned"] < of_8["8"] / 4
    assert of_8["8"] < of_8["8-stochastic"]


def test_a_gradient_that_fills_no_block_is_turned_back() -> None:
    (row,) = (it for it in rounding.measure(2, 1500, 64, 1) if it.way == "8 turned")
    assert 0 < row.error < 1e-3
