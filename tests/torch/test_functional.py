"""Functional collectives, torch.compile around them, reduce_scatter, what Gloo does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torch import functional_cases
from tests.worlds.processes.launch import launch


def test_functional_scattered_inner_and_compiled(tmp_path: Path) -> None:
    for said in launch(functional_cases.all_of_them, 3, tmp_path / "w"):
        # two plain, two coalesced, one table, one with autograd (twice where backward sums too)
        sums, scatters = said["functional"]
        assert sums >= 6
        assert scatters == 3
        assert {"all_to_all_single"} <= {
            name.replace("alltoall_base", "all_to_all_single") for name in said["others"]
        }
        assert said["moved"] == (1, 1)
        assert said["scattered"] == 4 * 2 + 1 + 1 + 2
        assert said["fallbacks"] == {
            "all_reduce SUM of float32": 1,  # of a fake tensor
            "reduce_scatter SUM of float64": 1,
            "reduce_scatter MAX of float32": 1,
        }
        assert said["inner"]["all_reduce PRODUCT of int64"] == 1
        assert said["inner"]["all_reduce MAX of float32"] == 2
        assert said["inner"]["all_reduce BOR of int32"] == 1
        assert said["compiled"] == ["eager", "aot_eager"]


@pytest.mark.long  # compiles C++
def test_compiled_by_inductor(tmp_path: Path) -> None:
    said = launch(functional_cases.compiled_by_inductor, 2, tmp_path / "w", deadline_s=200)
    assert said == [True, True]
