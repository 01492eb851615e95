"""P4 programs that are not ours: the soft switch and BMv2 must make the same of random packets."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ina.p4.compile import compile_program
from ina.tables.values import Entry, EntryCounter
from ina.testing.bmv2_device import Bmv2Device
from ina.testing.case import Arrival
from ina.testing.device import Device
from ina.testing.differential import disagreement
from ina.testing.soft_device import SoftDevice
from tests.conformance.mutants import Built
from tests.conformance.programs import FOLDER, STRESSES, Stress

PACKETS = 1000
PORT = 4


TURNS = {"clone", "digest", "resubmit"}
"""Their sessions and lists are set in ways of their own (tests/switch/p4runtime/test_clones.py)."""


def test_every_program_has_its_stress() -> None:
    named = {stress.name for stress in STRESSES}
    assert {path.stem for path in FOLDER.glob("*.p4")} - TURNS == named


@pytest.mark.p4c
@pytest.mark.bmv2
@pytest.mark.parametrize("stress", STRESSES, ids=lambda stress: stress.name)
def test_same_packets_same_results(stress: Stress, soft: Device, tmp_path: Path) -> None:
    assert isinstance(soft, SoftDevice)
    bmv2_json, p4info = compile_program(FOLDER / f"{stress.name}.p4", tmp_path, stress.name)
    program = Built(p4info, bmv2_json)
    with Bmv2Device(ports=9) as bmv2:  # one for each: a program may end it
        compare(stress, program, soft, bmv2)


def compare(stress: Stress, program: Built, soft: SoftDevice, bmv2: Bmv2Device) -> None:
    """Random packets to both, one after the other."""
    rng = random.Random(stress.name)
    state = stress.state(rng)
    for device in (soft, bmv2):
        device.load(program)
        device.insert(state)

    arrivals = []
    for _ in range(PACKETS):
        frame = stress.frame(rng)
        out = soft.process([(PORT, frame)])
        arrivals.append(Arrival(PORT, frame, tuple((p, stress.steady(f)) for p, f in out)))
    sent = bmv2.process_counted(PORT, [(each.frame, len(each.out)) for each in arrivals])

    assert disagreement(arrivals, [(p, stress.steady(f)) for p, f in sent]) == ""
    assert sum(len(each.out) for each in arrivals) > PACKETS // 4
    refs = [
        *stress.counters,
        *(
            EntryCounter(item.table, item.match)
            for item in state
            if isinstance(item, Entry) and item.table == "MyIngress.exact_t"
        ),
    ]
    assert bmv2.counts(refs) == soft.counts(refs)
