"""Scenario files: what is read, and what is refused with file and key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ina.sim.draw import draw
from ina.sim.errors import ScenarioError
from ina.sim.scenario import check, load, make
from tests.lines import ROOT

EXAMPLES = sorted((ROOT / "examples" / "sim").glob("*.toml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_scenarios(path: Path) -> None:
    scenario = load(path)
    assert scenario.name == path.stem
    assert scenario.job


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ({"jobs": []}, "unknown field `jobs`"),
        ({"job": [{"workers": 4, "step": 1}]}, "job[0]: Object contains unknown field `step`"),
        ({"job": [{}]}, "job[0]: Object missing required field `workers`"),
        ({"job": [{"workers": 33}]}, "job 'job': workers = 33: want 1 to 32"),
        ({"job": [{"workers": 2, "hosts": ["h1"]}]}, "1 hosts for 2 workers"),
        ({"job": [{"workers": 1, "hosts": ["h9"]}]}, "there is no host 'h9'"),
        ({"job": [{"workers": 1}, {"workers": 1}]}, "job 'job': the name is there twice"),
        ({"values": 65}, "there are builds for 64, 256, 360 and 1024"),
        ({"limit_s": 0}, "limit_s = 0: it must be more than 0"),
        ({"link": {"loss": 1.5}}, "loss = 1.5: a probability is 0 to 1"),
        ({"link": {"delay_us": -1}}, "delay_ns = -1000: it must not be negative"),
        ({"link": {"rate_gbit": 0}}, "rate_gbit = 0: it must be more than 0"),
        ({"link": {"marking": "blue"}}, "link.marking: Invalid enum value 'blue'"),
        ({"congestion": {"algorithm": "x"}}, "congestion: no congestion algorithm is named 'x'"),
        ({"topology": {"kind": "fat-tree", "k": 3}}, "fat-tree of 3: want an even number"),
        ({"topology": {"hosts": 0}}, "topology.hosts = 0: want 1 or more"),
        ({"fault": [{"what": "pause", "where": "job/0"}]}, "want either at_ms or every_ms"),
        ({"fault": [{"what": "power_cycle", "at_ms": 1, "where": "s9"}]}, "where = 's9': want s1"),
        ({"fault": [{"what": "link", "at_ms": 1, "where": "h1-s1"}]}, "want `link`"),
        ({"fault": [{"what": "controller_kill", "at_ms": 1, "point": "x"}]}, "point 'x' is none"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_is_refused_by_key(document: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        make(document, "a.toml")
    assert str(refused.value).startswith("a.toml: ")
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("graph", "complaint"),
    [
        ({"names": ["a", "a"], "switches": {}}, "the name 'a' is there twice"),
        ({"names": ["a"], "switches": {"s": "p4"}}, "host 'a' has 0 cables"),
        ({"names": ["a"], "switches": {"s": "p4"}, "cables": [{"one": "a", "other": "t"}]},
         "cable a-t: there is no node 't'"),
        ({"names": [], "switches": {"s": "p4"}, "cables": [{"one": "s", "other": "s"}]},
         "cable s-s: it has one end only"),
    ],
)  # fmt: skip
def test_graphs_that_are_none_are_refused(graph: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ScenarioError, match=complaint):
        make({"topology": {"kind": "graph", **graph}})


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"none\.toml: No such file"):
        load(tmp_path / "none.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("a = ")
    with pytest.raises(ScenarioError, match=r"bad\.toml: not TOML"):
        load(bad)
    listed = tmp_path / "listed.json"
    listed.write_text("[1]")
    with pytest.raises(ScenarioError, match=r"listed\.json: want a table of keys"):
        load(listed)


def test_each_seed_draws_a_scenario_that_holds_and_always_the_same() -> None:
    drawn = [draw(seed) for seed in range(300)]
    for scenario in drawn:
        check(scenario)
    assert drawn == [draw(seed) for seed in range(300)]
    assert len({scenario.topology.hosts for scenario in drawn}) > 10
    assert {job.workers for scenario in drawn for job in scenario.job} >= {1, 2, 32}
    assert {fault.what for scenario in drawn for fault in scenario.fault} >= {
        *("link_down", "pause", "crash", "power_cycle", "controller_kill", "controller_cut")
    }
