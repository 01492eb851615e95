"""Sparse gradients, and dense ones of which most is zero: what no rank has is not sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from ina.host.errors import SessionClosedError
from ina.torch import Options
from ina.torch.blocks import LEAST_BLOCKS, REST, BlockChoice
from ina.torch.env import Settings
from ina.torch.errors import SettingError
from tests.torch import sparse_cases
from tests.worlds.processes.launch import launch


def test_sums_are_the_dense_ones(tmp_path: Path) -> None:
    """In one group of processes, with loss.

    pytorch #87497: a rank whose batch touches no row. #111422: sparse gradients through DDP itself.
    #22226: ranks with unequal numbers of rows, of which none is padded. #80496: a table that no
    rank uses.
    """
    environ = {"INA_LOSS_RATE": "0.02", "INA_VALUES": str(sparse_cases.VALUES)}
    for stats in launch(sparse_cases.everything, 3, tmp_path / "w", environ=environ):
        assert stats.sparse_all_reduces == 24
        assert stats.fallbacks == 0
        assert 0 < stats.sparse_own_blocks < stats.sparse_union_blocks < stats.sparse_blocks


def test_ranks_that_differ_are_told_what_each_has(tmp_path: Path) -> None:
    said = launch(sparse_cases.differ, 2, tmp_path / "w")
    kinds = [
        "float32 (11, 6), sparse in 1 dimension",
        "float32 (10, 2, 3), sparse in 1 dimension",
        "float32 (10, 6), sparse in 2 dimensions",
        "float32 (1000, 6), sparse in 1 dimension",
        "float16 (10, 6), sparse in 1 dimension",
    ]
    for told in said:
        for one, kind in zip(told, kinds, strict=False):
            assert "rank 0 has SUM of sparse float32 (10, 6), sparse in 1 dimension; rank 1" in one
            assert one.endswith(f"rank 1 has SUM of sparse {kind}")
        assert "rank 1: sum of float32[60]" in told[-1]


class _Ended:
    """A sum with so many of a hundred blocks in its union, or that failed."""

    blocks = 100

    def __init__(self, union: int | None) -> None:
        self.union = union

    def wait(self) -> None:
        if self.union is None:
            raise SessionClosedError("closed")


def test_auto_goes_by_what_all_ranks_found() -> None:
    choice = BlockChoice("auto", 4, lag=2)
    tensor = torch.zeros(4 * LEAST_BLOCKS)

    def tried(kind: object, union: int | None) -> bool:
        part: Any = choice.part(tensor, kind)
        if part is not None:
            part.began(_Ended(union))
        return part is not None

    assert all(tried("thin", 49) for _ in range(10))
    assert [tried("full", 50) for _ in range(2 + REST)] == [True] * 2 + [False] * REST
    assert tried("full", 10)  # tried again
    assert tried("failed", None)
    assert tried("failed", 10)
    assert not tried("failed", 10)
    assert choice.part(tensor[1:], "thin") is None  # hardly a block
    assert choice.part(tensor.int(), "thin") is None
    assert BlockChoice("off", 4).part(tensor, "thin") is None
    assert BlockChoice(5, 0).part(tensor[:5], "thin") is None
    assert BlockChoice(5, 0).part(tensor[:6], "thin") is not None


def test_a_setting_that_does_not_exist_is_named() -> None:
    said = "sparse=some: want off, auto or values of a block, 1 to 16777216"
    with pytest.raises(SettingError, match=said):
        Options(sparse="some")
    with pytest.raises(SettingError, match=f"INA_{said.upper()[:6]}{said[6:]}"):
        Settings.from_environ({"INA_SPARSE": "some"})
    assert Settings.from_environ({"INA_SPARSE": "360"}).sparse == 360
    with pytest.raises(SettingError, match="sparse=0: want"):
        Options(sparse=0)
