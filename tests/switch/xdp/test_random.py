"""Random programs (fuzz/programs) in the kernel: what leaves is what the interpreter says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.programs.check import expected
from fuzz.programs.generate import generated
from fuzz.programs.lower import to_json
from ina.switch.errors import UnsupportedProgramError
from ina.switch.targets import xdp_target
from ina.testing.soft_device import cannot_run_xdp
from tests.selection import LONG

FOUND = (4, 14, 57)
"""A constant that is shifted out of a C int; headers that are made anew where they lie."""
SEEDS = range(200) if LONG else FOUND
PAD = bytes(60)
"""Behind each frame: the kernel takes and sends none of less than 14 bytes."""

pytestmark = pytest.mark.skipif(bool(cannot_run_xdp()), reason=cannot_run_xdp() or "it is there")


@pytest.mark.parametrize("main_path", [True, False], ids=["main", "general"])
@pytest.mark.timeout(0)
def test_packets_leave_as_the_interpreter_says(main_path: bool, cache_dir: Path) -> None:
    wrong, refused = [], 0
    for seed in SEEDS:
        trial = generated(seed)
        trial = replace(trial, packets=tuple((port, data + PAD) for port, data in trial.packets))
        text = to_json(trial.program)
        right = expected(trial, text)
        try:
            with xdp_target(cache_dir).load(text, main_path=main_path) as pipeline:
                for group in trial.program.groups:
                    pipeline.set_multicast(group.number, group.copies)
                found = [pipeline.process(port, data) for port, data in right.packets]
        except UnsupportedProgramError:
            refused += 1
            continue
        if found != [list(copies) for copies in right.sent]:
            wrong.append(seed)
    assert wrong == []
    assert refused <= len(SEEDS) // 5
