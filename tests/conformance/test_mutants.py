"""Bugs in the P4 program: the conformance cases must notice each, on every data plane."""

from __future__ import annotations

from pathlib import Path

import pytest

from ina.testing.bmv2_device import Bmv2Device
from ina.testing.case import Verdict, run_case
from ina.testing.cases import all_cases
from ina.testing.device import Device
from ina.testing.differential import Comparison
from ina.testing.minimise import minimise
from ina.testing.model_device import ModelDevice
from ina.testing.soft_device import SoftDevice
from tests.conformance.mutants import MUTANTS, Built, Mutant

VALUES = 64


def build(mutant: Mutant, how: str, folder: Path) -> Built:
    """By p4c, where it is, or by changing the JSON."""
    if how == "json":
        return mutant.patch(VALUES, folder)
    return mutant.compile(VALUES, folder)


def device_of(name: str, program: Built) -> Device:
    """A device that loads the mutant."""
    if name == "soft":
        return SoftDevice(program_of=lambda _values: program)
    return Bmv2Device(program_of=lambda _values: program)


def noticed(mutant: Mutant, device: Device) -> list[Verdict]:
    """The verdicts of the cases of the topic that must notice the bug."""
    topic = mutant.noticed_by.partition("/")[0]
    cases = [case for case in all_cases(VALUES) if case.name.startswith(f"{topic}/")]
    return [run_case(case, device) for case in cases]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
@pytest.mark.parametrize(
    ("how", "device"),
    [
        ("json", "soft"),
        pytest.param("p4c", "soft", marks=pytest.mark.p4c),
        pytest.param("p4c", "bmv2", marks=[pytest.mark.p4c, pytest.mark.bmv2]),
    ],
)
def test_conformance_fails(mutant: Mutant, how: str, device: str, tmp_path: Path) -> None:
    with device_of(device, build(mutant, how, tmp_path)) as wrong:
        verdicts = noticed(mutant, wrong)
    failed = {verdict.case.name for verdict in verdicts if verdict.differences}
    assert mutant.noticed_by in failed


def test_random_traffic_finds_a_bug_and_the_case_is_made_short(tmp_path: Path) -> None:
    program = MUTANTS[0].patch(VALUES, tmp_path)
    with ModelDevice() as model, SoftDevice(program_of=lambda _values: program) as wrong:
        finding = Comparison(model, wrong, VALUES, seed=5).run(20_000)
        assert finding is not None
        short = minimise(finding, model, wrong, budget_s=60.0)
        assert len(short.case.steps) <= 5
        assert len(short.case.state) <= 16
        assert run_case(short.case, wrong).differences == short.differences
    with SoftDevice() as right:
        assert run_case(short.case, right).ok
