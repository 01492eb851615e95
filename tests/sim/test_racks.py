"""Jobs over trees of switches in the virtual network: placed, summed, and by which ways."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ina.fabric.graph import Fabric, Place
from ina.fabric.shapes import fat_tree, leaf_spine, racks, star
from ina.sim.draw import draw
from ina.sim.ladder import ladder, recorder
from ina.sim.minimise import minimise
from ina.sim.placing import placed
from ina.sim.racks import joined, tree_of
from ina.sim.reading import check, make
from ina.sim.report import Report
from ina.sim.run import Simulation
from ina.sim.scenario import Scenario
from ina.sim.topology import Cable, Topology, laid

TENSORS = [{"elems": 3000}, {"elems": 500, "dtype": "int32"}, {"elems": 700, "op": "avg"}]
TWO_LEVELS = {"kind": "racks", "racks": [3, 1, 2]}
THREE_LEVELS = {"kind": "racks", "racks": [2, 3, 1, 2, 1], "pod": 2}
SPINES = {"kind": "leaf-spine", "leaves": 3, "hosts": 2, "above": "p4"}
FAT_TREE = {"kind": "fat-tree", "k": 4, "above": "p4"}


def run(topology: dict[str, Any], job: dict[str, Any], **more: Any) -> Report:
    document = {"topology": topology, "job": [{"steps": 2, "tensors": TENSORS, **job}], **more}
    return Simulation(make(document), 1, mend_at_s=1.0).run()


def all_done(report: Report, jobs: int = 1) -> None:
    assert report.violations == []
    assert len(report.jobs) == jobs, report.events  # nothing has ended before its time
    workers = sum(job.workers for job in report.jobs)
    assert report.sums_checked == workers * report.jobs[0].steps_done * len(TENSORS)


@pytest.mark.parametrize("multicast", [False, True])
@pytest.mark.parametrize(
    ("topology", "job"),
    [
        (TWO_LEVELS, {"workers": 6, "racks": 3}),
        (TWO_LEVELS, {"workers": 9, "hosts": ["h1"] * 4 + ["h4", "h5", "h5", "h6", "h6"]}),
        (THREE_LEVELS, {"workers": 9, "racks": 5}),
        (THREE_LEVELS, {"workers": 3, "hosts": ["h9", "h1", "h3"]}),  # one of a pod
        (SPINES, {"workers": 6, "racks": 3}),
        (FAT_TREE, {"workers": 8, "racks": 8, "copies": 3}),
    ],
)
def test_sums_over_racks_are_exact(
    topology: dict[str, Any], job: dict[str, Any], multicast: bool
) -> None:
    all_done(run(topology, job, multicast=multicast), job.get("copies", 1))


def test_an_uplink_carries_one_contribution_a_rack() -> None:
    report = run(THREE_LEVELS, {"workers": 9, "racks": 5})
    packets = {port.name: port.packets for port in report.ports}
    chunks = packets["h1>l1"]
    assert chunks > 50
    assert {packets[f"{one}>{other}"] for one, other in UPLINKS} == {chunks}
    assert {packets[f"{other}>{one}"] for one, other in UPLINKS} == {chunks}


UPLINKS = [
    ("l1", "a1"), ("l2", "a1"), ("l3", "a2"), ("l4", "a2"), ("l5", "a3"),
    ("a1", "s1"), ("a2", "s1"), ("a3", "s1"),
]  # fmt: skip


def test_a_lossy_tree_outlives_a_dead_controller_and_links_that_are_down() -> None:
    faults = [
        {"what": "link_down", "where": "l2-a1", "at_ms": 40, "for_ms": 200},
        {"what": "link_down", "where": "a2-s1", "at_ms": 60, "for_ms": 300},
        {"what": "controller_kill", "at_ms": 100, "for_ms": 500},
    ]
    link = {"loss": 0.01, "duplication": 0.02, "reordering": 0.02, "reordering_us": 300}
    job = {"workers": 9, "racks": 5, "steps": 20, "compute_ms": 20}
    report = run(THREE_LEVELS, job, link=link, fault=faults)
    all_done(report)
    assert len(report.events) == 4, report.events


@pytest.mark.parametrize(
    ("what", "where"),
    [
        *(("power_cycle", switch) for switch in ("l1", "a1", "s1")),
        *(("link_down", cable) for cable in ("h1-l1", "l1-a1", "a1-s1")),
        *(("link", way) for way in ("l1>a1", "a1-s1")),
        *((what, "job/3") for what in ("crash", "pause")),
        *((what, "") for what in ("controller_kill", "controller_cut")),
    ],
)
def test_whatever_goes_wrong_once_in_a_tree_its_job_is_done(what: str, where: str) -> None:
    fault: dict[str, Any] = {"what": what, "where": where, "at_ms": 105, "for_ms": 50}
    if what == "link":
        fault["link"] = {"loss": 0.5, "duplication": 0.3}
    report = run(THREE_LEVELS, {"workers": 9, "racks": 5, "steps": 20, "compute_ms": 5},
                 fault=[fault])  # fmt: skip
    assert report.violations == []
    assert any(what in line for line in report.events)
    assert report.jobs[-1].ended == ""
    assert sum(job.steps_done for job in report.jobs) >= 20
    may_end = what in ("power_cycle", "crash")
    assert len(report.jobs) <= 1 + may_end


@pytest.mark.parametrize("racks", [8, pytest.param(32, marks=pytest.mark.long)])
def test_hundreds_of_workers(racks: int) -> None:
    topology = {"kind": "racks", "racks": [32] * racks}
    job = {"workers": 32 * racks, "racks": racks, "steps": 1, "tensors": [{"elems": 500}]}
    report = run(topology, job, controller={"lease_s": 5})
    assert report.violations == []
    assert report.sums_checked == 32 * racks
    packets = {port.name: port.packets for port in report.ports}
    assert packets[f"l{racks}>s1"] == packets[f"h{32 * racks}>l{racks}"]


def test_a_controller_sees_p4_switches_and_who_is_behind_them() -> None:
    cables = [("h1", "l1"), ("h2", "x1"), ("x1", "x2"), ("x2", "l2"), ("l1", "l2"), ("h3", "l2")]
    switches = {"l1": "p4", "x1": "plain", "x2": "plain", "l2": "p4", "lost": "p4"}
    topology = Topology(
        ("h1", "h2", "h3"), switches, tuple(Cable(one, other) for one, other in cables)
    )
    fabric = joined(topology)
    assert fabric.switches == ("l1", "l2", "lost")
    assert [(link.switches, link.ports) for link in fabric.links] == [(("l1", "l2"), (2, 2))]
    assert list(fabric.hosts.values()) == [
        Place(switch, port, rate_bits_per_s=1e10)
        for switch, port in (("l1", 1), ("l2", 1), ("l2", 3))
    ]
    assert [link.rate_bits_per_s for link in fabric.links] == [1e10]
    tree = tree_of(fabric, topology, "job", ["h3", "h1", "h2"])
    assert [(node.switch, node.ranks, node.parent) for node in tree] == [
        ("l1", (1,), None),
        ("l2", (0, 2), "l1"),
    ]


def test_hosts_that_no_p4_switch_is_near_are_behind_none() -> None:
    topology = Topology(("h1",), {"x": "plain", "s": "p4"}, (Cable("h1", "x"),))
    assert topology.nearest("h1", "p4") == ""
    assert joined(topology).hosts == {}


@pytest.mark.parametrize(
    "fabric",
    [star(3), racks([1, 2, 3], 2), leaf_spine(2, 3, 2), fat_tree(4)],
    ids=["star", "racks", "leaf-spine", "fat-tree"],
)
def test_a_fabric_that_is_laid_keeps_its_ports_and_addresses(fabric: Fabric) -> None:
    topology = laid(fabric)
    ports = {str(cable): ends for cable, *ends in topology.ports()}
    for link in fabric.links:
        assert ports["-".join(link.switches)] == list(link.ports)
    for number, (address, place) in enumerate(fabric.hosts.items(), 1):
        assert ports[f"h{number}-{place.switch}"] == [1, place.port]
        assert topology.addresses[f"h{number}"] == address


def test_racks_are_trees_of_two_and_three_levels() -> None:
    assert laid(racks([1, 2])).switches == {"l1": "p4", "l2": "p4", "s1": "plain"}
    deep = laid(racks([1, 2, 1], 2))
    assert list(deep.switches) == ["l1", "l2", "l3", "a1", "a2", "s1"]
    assert [str(cable) for cable in deep.cables] == [
        "h1-l1", "h2-l2", "h3-l2", "h4-l3", "l1-a1", "l2-a1", "l3-a2", "a1-s1", "a2-s1",
    ]  # fmt: skip


def test_jobs_over_racks_get_equal_parts_of_each() -> None:
    document = {
        "topology": {"kind": "leaf-spine", "leaves": 4, "hosts": 2, "above": "p4"},
        "job": [
            {"workers": 3, "racks": 2, "name": "a"},
            {"workers": 3, "racks": 3, "name": "b"},
            {"workers": 2, "racks": 1, "name": "c"},
            {"workers": 8, "racks": 4, "name": "d"},
        ],
    }
    scenario = make(document)
    assert [job.hosts for job in placed(scenario.job, scenario.build_topology())] == [
        ["h1", "h2", "h3"],
        ["h4", "h5", "h7"],
        ["h1", "h2"],
        ["h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8"],
    ]


def test_a_tree_is_made_as_small_as_still_fails() -> None:
    """Racks go first, and with a cable or a switch its faults."""
    document = {
        "topology": THREE_LEVELS,
        "job": [{"workers": 9, "racks": 5, "tensors": TENSORS}],
        "fault": [
            {"what": "power_cycle", "where": "a2", "at_ms": 1},
            {"what": "link_down", "where": "l5-a3", "at_ms": 1},
            {"what": "power_cycle", "where": "s1", "at_ms": 1},
        ],
    }
    big = make(document)
    big = replace(big, job=placed(big.job, big.build_topology()))

    def fails(candidate: Scenario) -> bool:
        check(candidate)
        return candidate.topology.kind == "racks" and len(candidate.topology.racks) >= 2

    least = minimise(big, fails)
    assert least.topology.racks == [1, 1]
    assert least.topology.pod == 0
    assert least.fault == []
    assert minimise(big, still_holds).topology.kind == "star"
    graph = draw(next(seed for seed in range(100) if draw(seed).topology.kind == "graph"))
    assert minimise(graph, still_holds).topology.kind == "star"


def still_holds(candidate: Scenario) -> bool:
    check(candidate)
    return True


def test_a_ladder_has_columns_as_a_tree_is_written() -> None:
    document = {
        "topology": {"kind": "racks", "racks": [2, 2]},
        "controller": {"sizing": "asked"},
        "job": [{"workers": 4, "racks": 2, "steps": 1, "slots": 2,
                 "tensors": [{"elems": 64, "dtype": "int32"}]}],
    }  # fmt: skip
    trace = recorder(1000, None)
    Simulation(make(document), 1, trace=trace).run()
    columns, *lines = ladder(trace.records(), trace.ports)
    assert columns.split() == ["h1", "l1", "h2", "s1", "h3", "l2", "h4"]
    said = [next(word for word in line.replace("|", " ").split() if "/" in word) for line in lines]
    kinds = [word.strip("<->")[:4] for word in said]
    workers, leaves, down = kinds[:4], kinds[4:6], kinds[6:]
    assert sorted(workers) == ["c0/0", "c0/0", "c0/1", "c0/1"]
    assert sorted(leaves) == ["c0/0", "c0/1"]
    assert sorted(down) == ["r0/0"] * 3 + ["r0/1"] * 3


def test_of_switches_above_hosts_it_is_said_what_they_are() -> None:
    for fabric, above in ((leaf_spine(2, 2, 1), 2), (fat_tree(4), 12)):
        kinds = [list(laid(fabric, above=kind).switches.values()) for kind in ("plain", "p4")]
        assert [one.count("plain") for one in kinds] == [above, 0]
