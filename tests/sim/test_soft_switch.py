"""A switch that is a thread: its losses, its time, its batches."""

from __future__ import annotations

from typing import Any

import pytest

from ina.sim.reading import make
from ina.sim.report import Report
from ina.sim.run import Simulation

JOB = {"workers": 3, "steps": 4, "tensors": [{"elems": 60_000, "dtype": "int32"}]}


def run(seed: int = 1, **keys: Any) -> Report:
    document = {"job": [JOB], "topology": {"hosts": 3}, "limit_s": 30, **keys}
    report = Simulation(make(document), seed).run()
    assert report.violations == []
    assert report.sums_checked == 12
    return report


def test_it_loses_as_the_soft_switch_does_at_its_ports_and_nothing_on_the_links() -> None:
    quiet, lossy = run().jobs[0], run(switch={"loss": 0.01})
    assert quiet.resends_lost == 0
    job = lossy.jobs[0]
    assert all(port.lost_packets == 0 for port in lossy.ports)
    # Of 938 packets and as many results of three workers in each of four steps, 1 % each way.
    assert job.resends_lost == pytest.approx(2 * 0.01 * 3 * 4 * 938, rel=0.3)
    assert run(switch={"loss": 0.01}).jobs[0] == job
    assert run(2, switch={"loss": 0.01}).jobs[0].resends_lost != job.resends_lost


def test_what_a_packet_costs_it_bounds_what_goes_through() -> None:
    packet_ns = 1000
    report = run(switch={"packet_ns": packet_ns}, link={"rate_gbit": 100, "delay_us": 1})
    job = report.jobs[0]
    worked_s = sum(port.packets for port in report.ports) * packet_ns / 1e9
    assert 0.95 < worked_s / (job.steps_done * job.step_mean_s) <= 1.001
    assert worked_s > 2 * job.packets_sent * packet_ns / 1e9 * 0.95


def test_each_packet_of_a_lone_lane_waits_for_its_thread_to_wake() -> None:
    """One packet at a time: each step waits for the switch to wake, and for the workers."""
    one = {"workers": 2, "steps": 50, "tensors": [{"elems": 64, "dtype": "int32"}]}
    one["verify"] = "off"  # verified int32 that may wrap takes more rounds
    keys = {
        **{"job": [one], "topology": {"hosts": 2}, "limit_s": 30},
        "link": {"rate_gbit": 100, "delay_us": 5},
    }
    fast = Simulation(make(keys), 1).run().jobs[0]
    slow_keys = {**keys, "switch": {"wake_us": 30}, "host": {"wake_us": 70}}
    slow = Simulation(make(slow_keys), 1).run().jobs[0]
    # And once for the first submission: later ones come to a thread that is awake.
    assert 50 * (slow.step_mean_s - fast.step_mean_s) == pytest.approx(50 * 100e-6 + 70e-6)


def test_without_power_what_waits_for_the_thread_is_lost() -> None:
    fault = {"what": "power_cycle", "where": "s1", "at_ms": 20, "for_ms": 50}
    big = {**JOB, "steps": 20}
    document = {
        **{"job": [big], "topology": {"hosts": 3}, "limit_s": 60, "fault": [fault]},
        "switch": {"packet_ns": 2000, "trains": True, "loss": 0.001, "wake_us": 50},
    }
    report = Simulation(make(document), 1, mend_at_s=10.0).run()
    assert report.violations == []
    assert sum(job.steps_done for job in report.jobs) >= 20
