"""PyTorch over RoCEv2: digits by DDP, the bits of what plain UDP would sum of such packets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torch.digits_cases import by_reference_248, over_ina
from tests.worlds.processes.launch import launch

WORKERS = 4
SOFT = {"INA_TRANSPORT": "roce-soft", "INA_VALUES": "248"}


@pytest.mark.parametrize(
    ("mode", "loss"),
    [
        ("transparent", "0"),
        pytest.param("roce", "0", marks=pytest.mark.long),
        pytest.param("roce", "0.05", marks=pytest.mark.long),
        pytest.param("transparent", "0.05", marks=pytest.mark.long),
    ],
)
def test_digits_over_rocev2_have_the_bits_of_plain_udp(
    mode: str, loss: str, tmp_path: Path
) -> None:
    environ = {**SOFT, "INA_MODE": mode, "INA_LOSS_RATE": loss}
    outcomes = launch(over_ina, WORKERS, tmp_path / "ina", environ=environ)
    wanted = launch(by_reference_248, WORKERS, tmp_path / "model", environ={}, backend="gloo")
    assert {digest for digest, _ in outcomes} == set(wanted)
    assert len(set(wanted)) == 1
    for _, session in outcomes:
        assert session["transport"] == "roce-soft"
        assert session["damaged_results"] == session["corrupted_sums"] == 0
        if mode == "roce":  # a ring's connections send again by themselves
            assert (session["losses"] > 0) == (loss != "0")
