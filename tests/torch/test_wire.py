"""Gradients that travel in 16 or 8 bits: the documented sums bit for bit, in fewer packets."""

from __future__ import annotations

from pathlib import Path

import pytest

from ina.errors import InvalidInputError
from ina.host import Session, WorkerOptions
from ina.host.errors import HeadroomError
from ina.protocol.coding import CODINGS, MOST_WORKERS
from ina.torch import Options
from ina.torch.env import Settings
from ina.torch.errors import SettingError
from tests.torch import wire_cases
from tests.worlds.processes.launch import launch


@pytest.mark.parametrize(
    "wire",
    [
        "16",
        "8-stochastic",
        *(pytest.param(it, marks=pytest.mark.long) for it in ("8", "16-stochastic")),
    ],
)
def test_sums_are_the_documented_ones(wire: str, tmp_path: Path) -> None:
    environ = {
        "INA_WIRE": wire,
        "INA_VALUES": str(wire_cases.WORDS),
        "INA_LOSS_RATE": "0.05",
    }
    per_chunk = wire_cases.WORDS * 32 // CODINGS[wire].bits
    # Of three types of floats, two tensors that are longer than a packet.
    chunks = 3 * (1 + 2 * -(-5003 // per_chunk)) + 1 + -(-5003 // wire_cases.WORDS)
    for found in launch(wire_cases.packed_sums, 3, tmp_path / "w", environ=environ):
        assert found == ([], chunks)


def test_ranks_that_differ_in_it_are_told_how(tmp_path: Path) -> None:
    said = launch(wire_cases.differ, 2, tmp_path / "w")
    assert all("float32_in_16[5]" in one and "float32_in_8[5]" in one for one in said), said


def test_more_ranks_than_there_is_room_for_are_refused_as_they_join() -> None:
    for wire, workers, wider in (("8", 17, 16), ("8-stochastic", 65, 32), ("16", 65, 32)):
        bits = CODINGS[wire].bits
        with pytest.raises(HeadroomError) as caught:
            Session.join("127.0.0.1:9", "mine", 3, workers, WorkerOptions(wire=wire))
        assert str(caught.value) == (
            f"job 'mine' rank 3: columns of {bits} bits have room for sums of"
            f" {MOST_WORKERS[bits]} workers, not of {workers}; wire={wider} has"
        )


def test_a_wire_that_does_not_exist_is_named() -> None:
    said = "wire=12: want 32, 16, 16-stochastic, 8, 8-stochastic"
    with pytest.raises(SettingError, match=said):
        Options(wire="12")
    with pytest.raises(InvalidInputError, match=said):
        WorkerOptions(wire="12")
    with pytest.raises(SettingError, match=f"INA_{said.upper()[:4]}{said[4:]}"):
        Settings.from_environ({"INA_WIRE": "12"})
