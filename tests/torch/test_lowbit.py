"""Gradients in 8 bits with what rounding took kept for the next step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torch import lowbit_cases
from tests.worlds.processes.launch import launch


@pytest.mark.parametrize("backend", ["ina", pytest.param("gloo", marks=pytest.mark.long)])
def test_how_far_off_gradients_are(backend: str, tmp_path: Path) -> None:
    environ = {"INA_LOSS_RATE": "0.02"}
    for found in launch(lowbit_cases.hooks, 2, tmp_path / "w", environ=environ, backend=backend):
        assert found.pop("same on all")
        print(found)
        once, mean = found["8"]
        assert 0.0 < once < 0.1
        assert mean < once / 5  # what one step lacks the next ones have
        assert found["8, no feedback"][1] < found["8, no feedback"][0]
        assert found["8, no feedback"][1] > mean
        assert found["8, no transform"][0] > once
        assert found["16"][0] < once / 20


def test_a_checkpoint_has_what_was_kept(tmp_path: Path) -> None:
    assert launch(lowbit_cases.goes_on, 2, tmp_path / "w") == [True, True]


def test_nothing_of_a_gradient_that_is_not_finite_is_kept(tmp_path: Path) -> None:
    for seen, skipped, off in launch(lowbit_cases.not_finite, 2, tmp_path / "w"):
        assert seen
        assert skipped > 0
        assert off < 0.02


def test_ranks_agree_on_steps_in_whole_words(tmp_path: Path) -> None:
    assert launch(lowbit_cases.on_a_group_with_a_wire, 2, tmp_path / "w") == [True, True]


def test_what_it_cannot_do_is_refused(tmp_path: Path) -> None:
    launch(lowbit_cases.refused, 2, tmp_path / "w")
