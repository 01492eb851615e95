"""Jobs of mode shared that are moved in the virtual network, off what is taken out: to another
root, and to another aggregator. The simulator checks all sums."""

from __future__ import annotations

from typing import Any

import pytest

from ina.sim.reading import make
from ina.sim.report import Report
from ina.sim.run import Simulation

STEPS, AT_MS = 20, 130
TOPOLOGY = {"kind": "leaf-spine", "leaves": 3, "spines": 2, "hosts": 2, "above": "p4"}
JOB = {
    "name": "train",
    "mode": "shared",
    "workers": 6,
    "racks": 3,
    "steps": STEPS,
    "slots": 64,
    "tensors": [{"elems": 3000}, {"elems": 700, "dtype": "int32"}],
    "compute_ms": 40,
}
AT_LEAVES = {"aggregator": [{"name": "agg1", "switch": "l1"}, {"name": "agg2", "switch": "l2"}]}
AT_SPINES = {"aggregator": [{"name": "agg1", "switch": "s1"}, {"name": "agg2", "switch": "s2"}]}
EMBEDDED = {"aggregator": [{"name": "own", "switch": "l1", "job": "train"}]}
OF_FABRIC = {"switch": {"mode": "shared", "shared_slots": 16, "aggregators": ["s1", "s2"]}}
LOSSY = {"loss": 0.005, "duplication": 0.01, "reordering": 0.02, "reordering_us": 200}


def run(change: dict[str, Any], **more: Any) -> tuple[Report, Simulation]:
    document = {
        "topology": TOPOLOGY,
        "switch": {"mode": "shared", "shared_slots": 16},
        "link": LOSSY,
        "link_up": LOSSY,
        "job": [JOB],
        **change,
        **more,
    }
    simulation = Simulation(make(document), 1)
    report = simulation.run()
    assert report.violations == []
    assert [(job.steps_done, job.ended) for job in report.jobs] == [(STEPS, "")]
    assert report.sums_checked == report.jobs[0].workers * STEPS * 2
    return report, simulation


def moves(simulation: Simulation) -> list[str]:
    return [line for line in simulation.log if ": move" in line]


def repaired(where: str, at_ms: int = AT_MS) -> list[dict[str, Any]]:
    return [{"what": "repair", "where": where, "at_ms": at_ms, "for_ms": 10_000}]


def changed(simulation: Simulation) -> list[str]:
    return [line for line in simulation.log if "has changed: " in line]


@pytest.mark.parametrize(
    ("change", "placement"),
    [(AT_LEAVES, "ina"), (AT_SPINES, "ina"), (EMBEDDED, "nearest"), (OF_FABRIC, "nearest")],
)
def test_a_job_goes_to_the_other_root(change: dict[str, Any], placement: str) -> None:
    """Whichever of the spines is taken out: the root is at one of them, or its sums pass one."""
    moved = []
    for spine in ("s1", "s2"):
        _, simulation = run(change, fault=repaired(spine), controller={"placement": placement})
        assert len(changed(simulation)) == len(moves(simulation))
        moved += [line for line in moves(simulation) if f"over what is down: {spine}" in line]
    assert len(moved) == 1


def test_a_job_goes_to_the_aggregator_that_a_way_leads_to() -> None:
    """Its rack alone sums it, and its aggregator is behind another one."""
    job = {**JOB, "workers": 2, "racks": 1, "hosts": ["h1", "h2"]}
    change = {"aggregator": [{"name": "agg1", "switch": "s1"}, {"name": "agg2", "switch": "s2"}]}
    _, simulation = run(change, job=[job], fault=repaired("l1-s1"))
    (moved,) = moves(simulation)
    assert "the way to its aggregator goes over what is down: l1-s1" in moved
    (line,) = changed(simulation)
    assert " of agg2" in line


def test_a_job_that_has_no_other_root_goes_on() -> None:
    topology = {**TOPOLOGY, "spines": 1}
    _, simulation = run(AT_LEAVES, topology=topology, fault=repaired("s1"))
    assert moves(simulation) == []
    assert any("no other way leads around s1" in line for line in simulation.log)


def test_a_controller_that_dies_meanwhile_changes_no_sum() -> None:
    faults = [
        *repaired("s1"),
        {"what": "controller_kill", "where": "", "at_ms": AT_MS + 1, "for_ms": 50},
        {"what": "repair", "where": "l1-s2", "at_ms": AT_MS + 100, "for_ms": 50},
    ]
    _, simulation = run(AT_SPINES, fault=faults)
    assert changed(simulation)
