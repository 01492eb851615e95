"""Scenario files: what is read, and what is refused with file and key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ina.sim.causes import cause_of_end
from ina.sim.draw import draw
from ina.sim.errors import ScenarioError
from ina.sim.placing import placed
from ina.sim.racks import joined, tree_of
from ina.sim.reading import check, load, make
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
        ({"jobs": []}, "jobs: unknown key; did you mean 'job'?"),
        ({"job": [{"workers": 4, "step": 1}]}, "job[0].step: unknown key; did you mean 'steps'?"),
        ({"job": [{}]}, "job[0].workers: missing"),
        ({"job": [{"workers": 1025}]}, "job 'job': workers = 1025: want 1 to 1024"),
        ({"job": [{"workers": 33}]}, "job 'job': switch 's1' would add up 33 contributions"),
        ({"job": [{"workers": 2, "racks": 2}]}, "job 'job': racks = 2: want 1 to 1"),
        ({"job": [{"workers": 2, "racks": 0}]}, "job 'job': racks = 0: want 1 to 1"),
        (
            {"topology": {"kind": "leaf-spine"}, "job": [{"workers": 2, "racks": 2}]},
            "rank 0 is behind switch 'l1' and rank 1 behind 'l2': no path of links joins them",
        ),
        ({"topology": {"kind": "racks"}}, "topology.racks: hosts = 0: want 1 or more"),
        ({"topology": {"kind": "racks", "racks": [1], "pod": -1}}, "topology.pod = -1"),
        (
            {
                "topology": {
                    "kind": "graph",
                    "names": ["h1"],
                    "switches": {"s1": "plain"},
                    "cables": [{"one": "h1", "other": "s1"}],
                },
                "job": [{"workers": 1}],
            },
            "job 'job': no P4 switch is on a way to host h1",
        ),
        ({"job": [{"workers": 2, "hosts": ["h1"]}]}, "1 hosts for 2 workers"),
        ({"job": [{"workers": 1, "hosts": ["h9"]}]}, "there is no host 'h9'"),
        ({"job": [{"workers": 1}, {"workers": 1}]}, "job 'job': the name is there twice"),
        ({"job": [{"workers": 1, "copies": 0}]}, "job 'job': copies = 0: want 1 or more"),
        (
            {"job": [{"workers": 1, "copies": 2}, {"workers": 1, "name": "job-2"}]},
            "job 'job-2': the name is there twice",
        ),
        ({"values": 65}, "there are builds for 64, 256, 360 and 1024"),
        ({"limit_s": 0}, "limit_s = 0: it must be more than 0"),
        ({"link": {"loss": 1.5}}, "loss = 1.5: a probability is 0 to 1"),
        ({"link": {"delay_us": -1}}, "delay_ns = -1000: it must not be negative"),
        ({"link": {"rate_gbit": 0}}, "rate_gbit = 0: it must be more than 0"),
        ({"link": {"marking": "blue"}}, "link.marking: 'blue' is none of none, step, red"),
        ({"congestion": {"algorithm": "x"}}, "congestion: no congestion algorithm is named 'x'"),
        ({"congestion": {"algorithm": "swfit"}}, "; did you mean 'swift'?"),
        ({"congestion": {"algorithm": "fixed", "packts": 5}}, "did you mean 'packets'?"),
        ({"controller": {"placement": "nearst"}}, "controller.placement: no placement 'nearst'"),
        (
            {"congestion": {"algorithm": "no_such_module:W"}},
            "congestion: the window 'no_such_module:W': there is no module",
        ),
        (
            {"topology": {"kind": "fat-tree", "k": 3}},
            "fat-tree: k 3: want an even number",
        ),
        ({"topology": {"hosts": 0}}, "topology.hosts = 0: want 1 or more"),
        (
            {
                "job": [{"workers": 1, "copies": 2}],
                "fault": [{"what": "crash", "where": "job/0", "at_ms": 1}],
            },
            "want job-1/0, job-2/0",
        ),
        ({"fault": [{"what": "pause", "where": "job/0"}]}, "want either at_ms or every_ms"),
        (
            {"fault": [{"what": "pause", "where": "job/0", "every_ms": 1, "every_growth": 0.9}]},
            "every_growth = 0.9: want 1 or more",
        ),
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


def test_half_of_the_seeds_have_trees_of_all_shapes() -> None:
    drawn = [draw(seed) for seed in range(300)]
    trees = [one for one in drawn if one.topology.kind != "star"]
    assert 120 < len(trees) < 180
    of_racks = [one.topology for one in trees if one.topology.kind == "racks"]
    assert {len(one.racks) for one in of_racks} >= set(range(1, 7))
    assert all(1 <= len(one.racks) <= 8 for one in of_racks)
    assert {one.pod for one in of_racks} == {0, 1, 2, 3}
    assert sum(len(set(one.racks)) > 1 for one in of_racks) > len(of_racks) / 3
    assert sum(one.topology.kind == "graph" for one in trees) > 20
    assert {one.multicast for one in trees} == {False, True}
    assert 30 < sum(one.link_up is not None for one in trees) < 120
    where = {fault.where for one in trees for fault in one.fault if fault.what == "power_cycle"}
    assert {"l1", "a1", "s1"} <= where
    several = 0
    for one in trees:
        topology = one.build_topology()
        fabric = joined(topology)
        for job in one.job:
            several += len(tree_of(fabric, topology, job.name, job.hosts)) > 1
    assert several > 100


def test_copies_go_behind_one_switch_each() -> None:
    scenario = make(
        {
            "topology": {"kind": "fat-tree", "k": 4},  # two hosts behind each switch
            "job": [
                {"workers": 1, "name": "one"},
                {"workers": 2, "name": "two", "copies": 2},
                {"workers": 3, "name": "three"},
                {"workers": 2, "name": "here", "hosts": ["h9", "h9"]},
            ],
        }
    )
    jobs = placed(scenario.job, scenario.build_topology())
    assert {job.name: job.hosts for job in jobs} == {
        "one": ["h1"],
        "two-1": ["h3", "h4"],
        "two-2": ["h5", "h6"],
        "three": ["h7", "h8", "h7"],
        "here": ["h9", "h9"],
    }


def test_jobs_of_a_star_follow_each_other() -> None:
    scenario = make(
        {
            "topology": {"hosts": 4},
            "job": [{"workers": 2, "copies": 3}, {"workers": 5, "name": "x"}],
        }
    )
    jobs = placed(scenario.job, scenario.build_topology())
    assert [job.hosts for job in jobs] == [
        ["h1", "h2"],
        ["h3", "h4"],
        ["h1", "h2"],
        ["h1", "h2", "h3", "h4", "h1"],
    ]


@pytest.mark.parametrize(
    ("document", "cause"),
    [
        ({}, ""),
        ({"fault": [{"what": "controller_kill", "at_ms": 1}]}, ""),
        ({"fault": [{"what": "crash", "where": "b/0", "at_ms": 1}]}, ""),
        ({"fault": [{"what": "crash", "where": "a/1", "at_ms": 1}]}, "crash a/1"),
        ({"fault": [{"what": "power_cycle", "where": "s1", "at_ms": 1}]}, "power_cycle s1"),
        ({"fault": [{"what": "controller_cut", "at_ms": 1}]}, "controller_cut"),
        ({"link": {"loss": 0.01}}, ""),
        ({"link_back": {"loss": 0.2}}, "links that lose or delay more than a job need stand"),
        ({"link_up": {"loss": 0.2}}, "links that lose or delay more than a job need stand"),
        ({"controller": {"loss": 0.1}}, "control messages get lost"),
        ({"controller": {"delay_ms": 500}}, "control messages are late"),
    ],
)
def test_what_a_job_may_end_for(document: dict[str, Any], cause: str) -> None:
    scenario = make({"job": [{"workers": 2, "name": "a"}, {"workers": 1, "name": "b"}], **document})
    assert cause_of_end(scenario, scenario.job[0]) == cause


def test_a_job_may_find_no_slots_where_another_is_given_most() -> None:
    error = "ControllerError: cannot create job 'a': job 'a': no slots left"
    for slots, resized, cause in (
        (8000, "b", "another job is given most of the slots"),
        (8000, "a", ""),
        (64, "b", ""),
    ):
        fault = {"what": "resize", "where": resized, "every_ms": 1, "for_ms": 1, "slots": slots}
        jobs = [{"workers": 2, "name": "a"}, {"workers": 1, "name": "b"}]
        scenario = make({"job": jobs, "fault": [fault]})
        assert cause_of_end(scenario, scenario.job[0], error=error) == cause
        assert cause_of_end(scenario, scenario.job[0]) == ""
