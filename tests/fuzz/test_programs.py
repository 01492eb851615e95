"""Random v1model programs: main path, general path and interpreter agree.

``python -m fuzz.programs --replay SEED`` shows the smallest part of a program that does not.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fuzz.programs.campaign import campaign, run_batch
from fuzz.programs.check import Finding
from fuzz.programs.generate import generated
from fuzz.programs.lower import to_json
from fuzz.programs.show import show

PROGRAMS = 500
LONG_PROGRAMS = 100_000
AT_ONCE = 50
STATE = Path(__file__).parents[2] / "out" / "fuzz" / "programs.json"


def told(found: list[Finding]) -> list[str]:
    return [f"seed {it.test.seed}, {it.path}: {it.what}" for it in found]


@pytest.mark.parametrize("first", range(0, PROGRAMS, AT_ONCE))
def test_all_paths_do_what_is_right(first: int) -> None:
    assert told(run_batch(first, AT_ONCE)) == []


@pytest.mark.long
@pytest.mark.timeout(0)
def test_all_paths_do_what_is_right_in_many_programs() -> None:
    """It goes on from where it was stopped, and says where it is."""
    found: list[Finding] = []
    for progress, more in campaign(0, LONG_PROGRAMS, os.cpu_count() or 1, STATE):
        found += more
        print(f"{progress.next} programs, {len(progress.found)} differ", flush=True)
        wrong = progress.found
    assert told(found) == []
    assert wrong == []
    STATE.unlink()


def test_a_seed_is_one_program() -> None:
    one, same, other = generated(7), generated(7), generated(8)
    assert one == same
    assert one != other
    assert show(one.program) == show(same.program)
    assert to_json(one.program) == to_json(same.program)
