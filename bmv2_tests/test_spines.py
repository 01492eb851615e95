"""Three racks of three below two spines: a job has a tree over each, by the controller's placement,
and is moved off a spine that is taken out."""

from __future__ import annotations

from pathlib import Path

import pytest

from bmv2_tests import jobs
from bmv2_tests.network import running
from bmv2_tests.plans import leaf_spine
from tests.selection import LONG

PLAN = leaf_spine(2, 3, 3)
LEAVES, SPINES = ("s1", "s2", "s3"), ("s4", "s5")
_NOTICE_S = 60.0


def test_lanes_are_dealt_to_both_spines_and_go_to_the_other_when_one_is_taken_out(
    kind: str, tmp_path: Path
) -> None:
    with running(PLAN, kind, tmp_path) as network:
        plan = jobs.plan_of("striped", 9, steps=60, elems=20_000, held=(41, tmp_path / "go_on"))
        job = jobs.start(network, plan)
        where = ("--controller", network.controller)
        job.workers[0].expect("step 2 ", _NOTICE_S)
        (before,) = network.ina("fabric", "show", *where)["jobs"]
        said = network.ina("fabric", "down", "s4", *where)
        assert said == {"changed": True, "down": ["s4"]}
        job.workers[0].expect("step 40 ", _NOTICE_S)
        (after,) = network.ina("fabric", "show", *where)["jobs"]
        network.ina("fabric", "up", "s4", *where)
        (tmp_path / "go_on").touch()
        job.finish()
    roots = [node for node in before["nodes"] if not node["parent"]]
    assert [(it["switch"], it["children"]) for it in roots] == [
        (spine, list(LEAVES)) for spine in SPINES
    ]
    assert all(it["results"] > 0 for it in roots)
    assert [node["switch"] for node in after["nodes"]] == ["s5", *LEAVES]


@pytest.mark.parametrize(
    "placement", ["nearest", "single", "panama", "goat", "grid"] if LONG else ["goat"]
)
def test_sums_are_exact_by_each_placement(kind: str, placement: str, tmp_path: Path) -> None:
    """Some have their root at a leaf: its packets are routed by a spine that sums nothing."""
    config = f'placement = "{placement}"\nrouting.routed = true'
    with running(PLAN, kind, tmp_path, config=config) as network:
        jobs.start(network, jobs.plan_of(placement, 9, steps=4, elems=6000)).finish()
