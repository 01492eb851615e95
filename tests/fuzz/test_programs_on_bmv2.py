"""The interpreter of random programs says what BMv2's simple_switch does, where that is on PATH.

Programs with multicast are left out: their groups would have to be set over Thrift.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fuzz.programs.check import expected
from fuzz.programs.generate import generated
from fuzz.programs.lower import to_json
from tests.switch.samples import simple_switch

PROGRAMS = 12


@pytest.mark.skipif(shutil.which(simple_switch.BINARY) is None, reason="no simple_switch on PATH")
def test_simple_switch_does_what_is_right(tmp_path: Path) -> None:
    done = seed = 0
    while done < PROGRAMS:
        trial = generated(seed)
        seed += 1
        text = to_json(trial.program)
        right = expected(trial, text)
        if trial.program.groups or not right.packets:
            continue
        sent = [each for packet in right.sent for each in packet]
        try:
            found = simple_switch.run(text, list(right.packets), tmp_path / str(seed))
        except simple_switch.AbortedError:
            continue  # by an assertion of its own
        done += 1
        assert found == simple_switch.outputs(sent), f"seed {trial.seed}"
