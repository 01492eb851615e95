"""Bugs of shared slots and of resizes that are put into what ships: the fuzzer finds each."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ina.p4 import compiled
from ina.sim import fabric
from ina.sim.reading import make
from ina.sim.run import Simulation
from ina.switch.targets import default_target
from tests.sim.block_bugs import BLOCK_BUGS
from tests.sim.bug import Bug
from tests.sim.bugs import TIME_S, compile_in, copy_to, find_extension, fuzz_in
from tests.sim.nic_bugs import NIC_BUGS
from tests.sim.number_bugs import NUMBER_BUGS
from tests.sim.packed_bugs import PACKED_BUGS
from tests.sim.resize_bugs import RESIZE_BUGS
from tests.sim.shape_bugs import SHAPE_BUGS
from tests.sim.shared_bugs import SHARED_BUGS
from tests.sim.stream_bugs import STREAM_BUGS

MOST_SEEDS = 1000
QUICK_SEED = 7
"""With which a run is short, and shows each of these."""
QUICK = (
    "shared controller: arcs are of other jobs' slots",
    "shared controller: an arc is not given back",
)
"""Nothing has to be compiled."""
_OF_SUMS = (*NUMBER_BUGS, *PACKED_BUGS, *BLOCK_BUGS, *SHAPE_BUGS)
_ALL = (*SHARED_BUGS, *RESIZE_BUGS, *_OF_SUMS, *STREAM_BUGS, *NIC_BUGS)
NEW_BUGS = [bug for bug in _ALL if not bug.slows]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all bugs: of each, one file is compiled."""
    return tmp_path_factory.mktemp("bugs")


def found(bug: Bug, folder: Path, seeds: int) -> str:
    root = copy_to(folder)
    bug.put_into(root)
    if bug.is_native:
        compile_in(root, folder / "build")
    else:
        shutil.copy2(find_extension(), root / "ina")
    return fuzz_in(root, seeds, mode=bug.seen_in, fault=bug.seen_with).what


def test_bugs_that_show_at_once_are_found(tmp_path: Path) -> None:
    root = copy_to(tmp_path)
    shutil.copy2(find_extension(), root / "ina")
    for name in QUICK:
        (bug,) = (bug for bug in NEW_BUGS if bug.name == name)
        good = (root / bug.file).read_bytes()
        bug.put_into(root)
        assert fuzz_in(root, 1, first=QUICK_SEED, mode=bug.seen_in).what, name
        (root / bug.file).write_bytes(good)


@pytest.mark.long
@pytest.mark.timeout(TIME_S)
@pytest.mark.parametrize(
    "bug", [bug for bug in NEW_BUGS if bug.name not in QUICK], ids=lambda bug: bug.name
)
def test_each_bug_is_found(bug: Bug, folder: Path) -> None:
    assert found(bug, folder, MOST_SEEDS)


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "what is put out names the newcomer",
        "what is put out has the newcomer's values",
        "what is put out has the newcomer's number",
        "what is put out is the newcomer's job's",
        "aggregator: it adds what overlaps",
        "aggregator: no replay",
    ],
)
def test_where_jobs_crowd_one_run_shows_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that is more important puts another out of its slots a hundred times."""
    (bug,) = (bug for bug in SHARED_BUGS if bug.name == f"shared p4: {name}")
    program = json.loads(compiled(64, bug.mode).bmv2_json.read_text())
    assert bug.change is not None
    bug.change(program)
    path = tmp_path / "bug.json"
    path.write_text(json.dumps(program))
    bad = default_target().read_and_build(path)
    monkeypatch.setattr(fabric, "_program", lambda values, mode: bad)
    job = {
        "mode": "shared",
        "slots": 4,
        "steps": 20,
        "tensors": [{"elems": 6400}],
        "straggler": {"share": 0.5, "mean_ms": 0.05},
    }
    scenario = make(
        {
            "topology": {"hosts": 4},
            "link": {"loss": 0.002},
            "switch": {"mode": "shared", "shared_slots": 2, "slot_age_us": 500},
            "aggregator": [{"name": "agg1"}, {"name": "agg2"}],
            "controller": {"sizing": "asked"},
            "job": [
                {**job, "name": "a", "workers": 3, "hosts": ["h1", "h2", "h3"]},
                {**job, "name": "b", "workers": 2, "hosts": ["h1", "h4"], "priority": 4},
            ],
        }
    )
    assert Simulation(scenario, 1, mend_at_s=1.0).run().violations
