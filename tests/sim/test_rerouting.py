"""Trees of running jobs that move in the virtual network: off what is taken out, and to where steps
are faster. The simulator checks all sums."""

from __future__ import annotations

from typing import Any

import pytest

from ina.sim.reading import make
from ina.sim.report import Report
from ina.sim.run import Simulation

TOPOLOGY = {"kind": "leaf-spine", "leaves": 3, "spines": 2, "hosts": 2, "above": "p4"}
JOB = {"workers": 6, "racks": 3, "steps": 30, "tensors": [{"elems": 100_000}], "compute_ms": 10}
SPINES = ("s1", "s2")


def run(placement: str = "ina", **more: Any) -> tuple[Report, Simulation]:
    document = {
        "topology": TOPOLOGY,
        "controller": {"placement": placement},
        "link_up": {"rate_gbit": 4},
        "job": [JOB],
        **more,
    }
    simulation = Simulation(make(document), 1)
    report = simulation.run()
    assert report.violations == []
    assert all(job.steps_done == 30 and not job.ended for job in report.jobs), report.events
    return report, simulation


def packets(report: Report) -> dict[str, int]:
    return {port.name: port.packets for port in report.ports}


def moves(simulation: Simulation) -> list[str]:
    return [line for line in simulation.log if ": move" in line]


def test_both_spines_carry_half_where_uplinks_are_slow() -> None:
    report, simulation = run()
    sent = packets(report)
    for leaf in ("l1", "l2", "l3"):
        assert sent[f"{leaf}>s1"] == pytest.approx(sent[f"{leaf}>s2"], rel=0.02)
    assert moves(simulation) == []


@pytest.mark.parametrize("placement", ["ina", "nearest"])
def test_a_spine_that_is_taken_out_carries_nothing_any_more(placement: str) -> None:
    out = {"what": "repair", "where": "s1", "at_ms": 150, "for_ms": 10_000}
    report, simulation = run(placement, fault=[out])
    sent = packets(report)
    whole = sum(sent[f"l1>{spine}"] for spine in SPINES)
    if placement == "ina":  # half of what it sends before, of a third of the time or so
        assert sent["l1>s1"] < 0.4 * whole
    assert sent["l1>s2"] > 0.5 * whole
    (moved,) = moves(simulation)
    assert "its trees go over what is down: s1" in moved
    (changed,) = [line for line in simulation.log if "has changed: 512 slots" in line]
    assert " of s2" in changed
    assert " of s1" not in changed


def test_a_link_that_is_taken_out_and_comes_back() -> None:
    out = {"what": "repair", "where": "l2-s1", "at_ms": 160, "for_ms": 100}
    _, simulation = run(fault=[out])
    first, *then = moves(simulation)
    assert "its trees go over what is down: l2-s1" in first
    assert any("slowest link" in line for line in then), "it does not go back to both spines"


def test_a_job_that_has_no_other_way_goes_on() -> None:
    topology = {**TOPOLOGY, "spines": 1}
    out = {"what": "repair", "where": "s1", "at_ms": 100, "for_ms": 150}
    _, simulation = run(topology=topology, fault=[out])
    assert moves(simulation) == []
    assert any("no other way leads around s1" in line for line in simulation.log)


def test_a_job_moves_aside_for_another_that_comes() -> None:
    """Two jobs over single trees begin at one spine each; a third finds the better of both, and
    whatever is then the slowest link is not slower than it must be."""
    jobs = [
        {**JOB, "name": name, "hosts": hosts, "workers": 3, "at_ms": [at_ms]}
        for name, hosts, at_ms in (
            ("one", ["h1", "h3", "h5"], 0),
            ("two", ["h2", "h4", "h6"], 60),
        )
    ]
    report, _ = run(job=jobs, controller={"placement": "ina", "stripes": 1})
    sent = packets(report)
    assert sent["l1>s1"] == pytest.approx(sent["l1>s2"], rel=0.1)


def test_losses_and_a_controller_that_dies_do_not_change_a_sum() -> None:
    faults = [
        {"what": "repair", "where": "s2", "at_ms": 60, "for_ms": 120},
        {"what": "controller_kill", "where": "", "at_ms": 61, "for_ms": 50},
        {"what": "repair", "where": "l1-s1", "at_ms": 250, "for_ms": 50},
    ]
    report, _ = run(fault=faults, link={"loss": 0.002})
    assert report.sums_checked == 6 * 30
