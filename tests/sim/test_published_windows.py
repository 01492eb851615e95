"""Comparisons that others published: small cells of them, on the real network, core and program."""

from __future__ import annotations

import math

import pytest

from ina.sim.reading import check
from ina.sim.windows.a2tp_testbed import A2TP_TESTBED, A2tpTestbed
from ina.sim.windows.network import Net
from ina.sim.windows.panama_clos import PanamaClos
from ina.sim.windows.ring import Beside, Ring
from ina.sim.windows.slots import HEALTHY, LATE
from ina.sim.windows.timing import READY_MS
from ina.sim.windows.watch import run_watched


def bed(threads: int = 9) -> A2tpTestbed:
    net = Net(2, 20, 256, 64, cables=2)
    return A2tpTestbed(
        name="small",
        net=net,
        shared=16,
        slow_gbit=0.5,
        total_s=28e-3,
        threads=threads,
        marked_packets=100,
    )


def clos(load: float) -> PanamaClos:
    net = Net(1, 40, 1024, 256, cables=2)
    return PanamaClos(
        name="small", net=net, load=load, ring_s=10e-3, compute_s=10e-3, measured_s=0.06
    )


def test_a_straggler_has_slots_when_the_other_job_has_ended() -> None:
    """And its own rate all the time, or nearly: what finds no slot is summed by its aggregator."""
    cell = bed()
    found = cell.run({"algorithm": "a2tp"}, 1).metrics
    assert not math.isnan(found["late after, Gbit/s"])
    assert found["late slots"] < found["healthy slots"]
    assert found["late slots"] < found["late slots after"] <= 1
    slow_gbit = cell.net.goodput_gbit(cell.slow_gbit)
    assert found["late after, Gbit/s"] == pytest.approx(slow_gbit, rel=0.02)
    assert found["late, Gbit/s"] <= 1.02 * slow_gbit < found["Gbit/s"]
    assert found["Gbit/s"] <= cell.limit.goodput_gbit


def test_nine_windows_are_one_that_grows_nine_times_as_fast() -> None:
    frames_bytes = bed().window * bed().net.frame_bytes
    for algorithm, option, one in (
        ("a2tp", "increase_packets", 1),
        ("aimd", "increase_bytes", 1500),
    ):
        table = {"algorithm": algorithm}
        scenario = bed().scenario(table, [HEALTHY, LATE])
        assert scenario.congestion == {
            "algorithm": algorithm, "first_bytes": frames_bytes, option: 9 * one,
        }  # fmt: skip
        assert bed(1).scenario(table, [HEALTHY, LATE]).congestion[option] == one
        said = bed().scenario({**table, option: 5}, [HEALTHY, LATE])
        assert said.congestion[option] == 5
    assert bed().scenario({"algorithm": "ina"}, [LATE]).congestion == {"algorithm": "ina"}


def test_the_straggler_is_slow_to_send_alone_and_hosts_do_not_mark() -> None:
    """1000 cells of 80 bytes are 225 of our packets."""
    cell = A2TP_TESTBED.cells[0]
    assert isinstance(cell, A2tpTestbed)
    scenario = cell.scenario({"algorithm": "a2tp"}, [HEALTHY, LATE], healthy_bytes=4000)
    check(scenario)
    assert [fault.where for fault in scenario.fault] == ["h8>s1"]
    assert scenario.link.marking == "none"
    assert scenario.ecn_packets == 225
    assert scenario.job[0].tensors[0].elems == 1000
    assert scenario.job[1].tensors[0].elems > 1000


def test_on_empty_links_training_takes_as_long_as_its_bytes() -> None:
    """In a ring 15 of 8 times as many as over the tree, behind as much computing."""
    cell = clos(load=1e-6)
    found = cell.run({"algorithm": "fixed"}, 1).metrics
    over_tree_s = cell.ring_bytes / (15 / 8) * 8e-9 / cell.net.goodput_gbit()
    assert found["step, ms"] == pytest.approx(1e3 * (cell.compute_s + over_tree_s), rel=0.05)
    # A ring's flows begin slowly, each step.
    assert 20 < found["ring's, ms"] < 25
    assert found["times as fast"] == pytest.approx(found["ring's, ms"] / found["step, ms"])
    assert found["short flows"] == 0


def test_flows_are_the_same_beside_a_ring_and_beside_nothing() -> None:
    cell = clos(load=0.2)
    end_s = READY_MS / 1e3 + 0.15
    ring, calm = Ring(end_s, cell.ring_bytes, cell.compute_s), Beside(end_s)
    for watch in (ring, calm):
        run_watched(cell.scenario({}), 1, watch)
    assert len(ring.sums_s) >= 1
    began, alone = (
        {flow.number: flow.started_ns for flow in watch.completions if flow.size_bytes < 1e5}
        for watch in (ring, calm)
    )
    both = began.keys() & alone.keys()
    assert len(both) > 3
    assert all(began[number] == alone[number] for number in both)
    assert sum(flow.slowdown or 0 for flow in ring.completions if flow.number in both) > sum(
        flow.slowdown or 0 for flow in calm.completions if flow.number in both
    )
