"""Bugs of shared slots and of resizes that are put into what ships: the fuzzer finds each."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.sim.bug import Bug
from tests.sim.bugs import compile_in, copy_to, find_extension, fuzz_in
from tests.sim.resize_bugs import RESIZE_BUGS
from tests.sim.shared_bugs import SHARED_BUGS

MOST_SEEDS = 400
QUICK_SEEDS = 10
QUICK = (
    "shared controller: arcs are of other jobs' slots",
    "shared controller: an arc is not given back",
)
"""Nothing has to be compiled, and one of the first seeds shows it."""
NEW_BUGS = [bug for bug in (*SHARED_BUGS, *RESIZE_BUGS) if not bug.slows]


def found(bug: Bug, folder: Path, seeds: int) -> str:
    root = copy_to(folder)
    bug.put_into(root)
    if bug.is_native:
        compile_in(root, folder / "build")
    else:
        shutil.copy2(find_extension(), root / "ina")
    return fuzz_in(root, seeds, mode=bug.seen_in).what


@pytest.mark.parametrize("name", QUICK)
def test_a_bug_that_shows_at_once_is_found(name: str, tmp_path: Path) -> None:
    (bug,) = (bug for bug in NEW_BUGS if bug.name == name)
    assert found(bug, tmp_path, QUICK_SEEDS)


@pytest.mark.long
@pytest.mark.parametrize(
    "bug", [bug for bug in NEW_BUGS if bug.name not in QUICK], ids=lambda bug: bug.name
)
def test_each_bug_is_found(bug: Bug, tmp_path: Path) -> None:
    assert found(bug, tmp_path, MOST_SEEDS)
