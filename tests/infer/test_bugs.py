"""Each bug that is put into the cores of inference is found in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.infer.bugs import BUGS, MOST_SEEDS, TIME_S, run_in
from tests.lines import ROOT
from tests.sim.bug import Bug
from tests.sim.bugs import compile_in, copy_to


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all bugs: of each, one file is compiled."""
    return tmp_path_factory.mktemp("bugs")


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_each_bug_of_the_list_is_still_one(bug: Bug) -> None:
    assert (ROOT / bug.file).read_text().count(bug.before) == 1


@pytest.mark.long
@pytest.mark.timeout(TIME_S)
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_each_bug_is_found(bug: Bug, folder: Path) -> None:
    root = copy_to(folder)
    bug.put_into(root)
    compile_in(root, folder / "build")
    assert run_in(root, MOST_SEEDS)
