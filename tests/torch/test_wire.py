"""Gradients that travel in 16 or 8 bits: the documented sums bit for bit, in fewer packets."""

from __future__ import annotations

from pathlib import Path

import pytest

from ina.protocol.coding import CODINGS
from tests.torch import wire_cases
from tests.worlds.processes.launch import launch


@pytest.mark.parametrize("wire", CODINGS)
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


def test_more_ranks_than_there_is_room_for_are_refused(tmp_path: Path) -> None:
    said = launch(wire_cases.too_many, 17, tmp_path / "w")
    for one in said:
        assert one.endswith(
            "columns of 8 bits have room for sums of 16 workers, not of 17; wire=16 has"
        )


def test_a_wire_that_does_not_exist_is_named(tmp_path: Path) -> None:
    assert launch(wire_cases.no_such, 1, tmp_path / "w") == [
        "wire=12: want 32, 16, 16-stochastic, 8, 8-stochastic"
    ]
