"""FSDP2 in real processes, overlapped and not, and what moves; the switch loses packets."""

from __future__ import annotations

from pathlib import Path

from tests.torch import fsdp2_cases
from tests.worlds.processes.launch import launch

LOSSY = {"INA_LOSS_RATE": "0.02", "INA_VALUES": "64"}


def test_overlapped_training_has_the_same_losses(tmp_path: Path) -> None:
    for said in launch(fsdp2_cases.with_and_without, 3, tmp_path / "w", environ=LOSSY):
        usual, overlapped = said["losses"]
        assert usual == overlapped
        backwards = 6 + 3
        assert said["network"] == (2 * 4 * backwards, True)
        assert said["gloo"] == {}


def test_bits_that_no_arithmetic_keeps(tmp_path: Path) -> None:
    assert launch(fsdp2_cases.moved, 3, tmp_path / "w", environ=LOSSY) == [True] * 3
