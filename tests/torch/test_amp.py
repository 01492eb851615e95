"""GradScaler meets an overflow: every rank of that job skips the step, other jobs do not notice."""

from __future__ import annotations

from pathlib import Path

from tests.torch import model_cases
from tests.worlds.processes.launch import launch


def test_overflow_is_skipped_by_all_ranks_of_its_job_alone(tmp_path: Path) -> None:
    said = launch(model_cases.overflow, 4, tmp_path / "w")
    for one in said[:2]:
        assert one["stepped"] == [True, True, False, True, True]
        assert one["scales"] == [1024.0, 1024.0, 512.0, 512.0, 512.0]
        assert one["finite"] == [True, True, False, True, True]
    for one in said[2:]:
        assert one["stepped"] == [True] * 5
        assert one["scales"] == [1024.0] * 5
        assert one["finite"] == [True] * 5
    assert said[0]["parameters"] == said[1]["parameters"]
    assert said[2]["parameters"] == said[3]["parameters"]
    assert said[0]["parameters"] != said[0]["undisturbed"]
    assert said[2]["parameters"] == said[2]["undisturbed"]
