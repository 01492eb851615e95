"""Benchmarks of device xdp: both programs sum, and frames that are in no sum are told."""

from __future__ import annotations

import pytest

from ina.bench import pipeline_xdp, switch_frames
from ina.bench.pipeline_frames import CHUNKS
from ina.bench.pipeline_xdp import measure_xdp
from ina.bench.switch_frames import DEVICES, measure_frames
from ina.emulate.topology import SwitchKind
from ina.errors import UnavailableError
from ina.switch.pipeline import Pipeline

WHY = switch_frames.why_not()
pytestmark = pytest.mark.skipif(bool(WHY), reason=WHY or "it can run")


def test_the_program_by_hand_sums_as_the_generated_one() -> None:
    row = measure_xdp(64, 3, repeats=1)
    assert (row.sums_checked, row.wrong) == (2 * CHUNKS * 64, 0)
    assert row.ns_per_packet > 0
    assert row.of_floor > 0


def test_without_the_program_by_hand_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = pipeline_xdp.FLOOR.with_name("none.c")
    monkeypatch.setattr(pipeline_xdp, "FLOOR", nowhere)
    with pytest.raises(UnavailableError, match=r"none.c: the hand-written program is in the rep"):
        measure_xdp(64, 3, repeats=1)


@pytest.mark.parametrize("device", DEVICES)
def test_frames_go_through_ports(device: SwitchKind) -> None:
    row = measure_frames(device, 64, 2, frames=CHUNKS * 2, samples=1)
    assert (row.frames, row.wrong) == (2 * 2 * CHUNKS, 0)
    assert row.cpu_ns_per_packet > 0


def test_frames_that_are_lost_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(pipeline: Pipeline, workers: int) -> None:
        """No job is installed."""

    monkeypatch.setattr(switch_frames, "install", nobody)
    monkeypatch.setattr(switch_frames, "_ROUND_S", 0.01)
    row = measure_frames("xdp", 64, 2, frames=CHUNKS * 2, samples=1)
    assert row.wrong == row.frames + row.frames // 2
