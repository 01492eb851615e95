"""Data sets of unequal length: a rank that goes on alone is told, and who it misses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from tests.worlds.processes.launch import launch

STEPS = 4


class Uneven:
    """One rank does a step more; returns the error of that step."""

    def __init__(self, longer: int) -> None:
        self.longer = longer

    def __call__(self, rank: int, workers: int) -> str | None:
        for _ in range(STEPS):
            dist.all_reduce(torch.ones(1000))
        if rank != self.longer:
            return None
        try:
            dist.all_reduce(torch.ones(77))
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return "no error"


@pytest.mark.parametrize("longer", [0, 1])
def test_rank_that_goes_on_alone_is_told_who_has_left(longer: int, tmp_path: Path) -> None:
    # Much longer than the test may take: only the controller can end the sum before.
    said = launch(Uneven(longer), 2, tmp_path / "w", group_timeout_s=3600.0, deadline_s=60.0)
    other = 1 - longer
    assert said[other] is None
    assert re.fullmatch(
        rf"WorkerLostError: job '.*' rank {longer} of 2: rank {other} \(.*\) has left after"
        rf" {STEPS} operations and has not sent operation {STEPS + 1} \(sum of float32\[77\]\), for"
        rf" which rank {longer} waits",
        said[longer],
    )
