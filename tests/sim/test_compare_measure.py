"""Measures of the comparison of windows against values computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ina.sim.windows.cell import Promise
from ina.sim.windows.history import History, JobHistory, PortHistory
from ina.sim.windows.measure import (
    Mean,
    converged_s,
    grown,
    jain,
    loss_share,
    mean_of,
    percentile,
    queue_bytes,
    rate_gbit,
    rates_gbit,
)
from ina.sim.windows.network import Limit, Net, limit
from ina.sim.windows.outcome import judge
from ina.sim.windows.series import series_of

AT_S = np.array([0, 1e-3, 2e-3, 3e-3, 4e-3])
"""Looks, a millisecond apart."""


def port(waiting: list[float], offered: list[float], dropped: list[float]) -> PortHistory:
    return PortHistory(
        np.array(waiting, float), np.zeros(5), np.array(offered, float), np.array(dropped, float)
    )


def job(done_bytes: list[float], windows: list[list[int]]) -> JobHistory:
    nothing = np.zeros(5)
    return JobHistory(
        np.array(done_bytes, float), np.array(windows, float),
        nothing, nothing, nothing, nothing, nothing,
    )  # fmt: skip


@pytest.fixture
def history() -> History:
    return History(
        at_s=AT_S,
        began_s=0.5,
        jobs={"a": job([0, 0, 125_000, 250_000, 375_000], [[8, 4]] * 2 + [[4, 2]] * 3)},
        ports={
            "x": port([0, 100, 200, 300, 400], [0, 10, 20, 30, 40], [0, 1, 1, 1, 2]),
            "y": port([0, 0, 0, 0, 5000], [0, 10, 20, 30, 40], [0, 0, 0, 0, 0]),
        },
        flows={"tcp": np.array([[0, 0], [0, 0], [0, 0], [125e3, 0], [125e3, 125e3]], float)},
        slots={},
    )


def test_jains_index() -> None:
    assert jain([3, 3, 3]) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert jain([1, 2, 3]) == pytest.approx(36 / (3 * 14))
    assert jain([0, 0]) == 0


def test_rates_are_of_what_grew_between_looks() -> None:
    done = np.array([0, 0, 125_000, 250_000, 375_000], float)
    assert rate_gbit(AT_S, done) == pytest.approx(0.75)
    assert rate_gbit(AT_S, done, 1e-3) == pytest.approx(1)
    assert rate_gbit(AT_S, done, 1e-3, 2e-3) == pytest.approx(1)
    assert rate_gbit(AT_S, done, 3.5e-3) == 0
    between = rates_gbit(AT_S, done, np.array([0.5e-3, 1.5e-3, 2.5e-3]))
    assert between == pytest.approx([0.5, 1])
    assert grown(AT_S, done, 2e-3) == 250_000


def test_shares_have_converged_when_they_are_fair_twice_on_end() -> None:
    """Bins of 1 ms: unfair, fair by chance, unfair, and fair from the fourth on."""
    at_s = np.array([1e-3 * number for number in range(8)])
    one = np.cumsum([0, 2, 1, 2, 1, 1, 1, 1]).astype(float)
    other = np.cumsum([0, 0, 1, 0, 1, 1, 1, 1]).astype(float)
    counts = [one, other]
    found_s = converged_s(at_s, counts, from_s=0, to_s=7e-3, bin_s=1e-3, index=0.95)
    assert found_s == pytest.approx(4e-3)
    late_s = converged_s(at_s, counts, from_s=3e-3, to_s=7e-3, bin_s=1e-3, index=0.95)
    assert late_s == pytest.approx(1e-3)
    assert converged_s(at_s, counts, from_s=0, to_s=3e-3, bin_s=1e-3, index=0.95) == math.inf


def test_queues_and_losses(history: History) -> None:
    assert queue_bytes(history, 0.0, 50) == 200
    assert queue_bytes(history, 0.0, 100) == 5000
    assert queue_bytes(history, 0.0, 100, ["x"]) == 400
    assert queue_bytes(history, 3e-3, 0, ["x"]) == 300
    assert loss_share(history, 0.0) == pytest.approx(2 / 80)
    assert loss_share(history, 1e-3) == pytest.approx(1 / 60)


def test_percentiles_are_values_that_there_are() -> None:
    assert percentile([5, 1, 4, 2, 3], 50) == 3
    assert percentile([5, 1, 4, 2, 3], 99) == 5
    assert percentile([5, 1, 4, 2, 3], 20) == 1
    assert math.isnan(percentile([], 50))


def test_confidence_intervals_are_students() -> None:
    """For 1, 2, 3: a deviation of 1, and t = 4.303 with two degrees of freedom."""
    found = mean_of([1, 2, 3])
    assert (found.mean, found.seeds) == (2, 3)
    assert found.half_width == pytest.approx(4.3027 / math.sqrt(3), rel=1e-4)
    alone, never = mean_of([7]), mean_of([7, math.inf])
    assert (alone.mean, alone.seeds, never.mean) == (7, 1, math.inf)
    assert math.isnan(alone.half_width)
    assert math.isnan(never.half_width)


def test_a_network_knows_what_it_can_carry() -> None:
    """64 values: 256 bytes, with headers 258 + 64 + 24."""
    net = Net(10, 100, 64, 256)
    overhead = net.frame_bytes - 1024
    assert 60 <= overhead <= 110
    assert net.goodput_gbit() == pytest.approx(10 * 1024 / (1024 + overhead))
    assert net.goodput_gbit(1) == pytest.approx(net.goodput_gbit() / 10)
    # Signals, two links' mean jitter of half a percent each, and the packet at each of them.
    assert net.base_s == pytest.approx(101e-6 + 2 * net.frame_bytes * 0.8e-9)
    assert net.product_packets == pytest.approx(net.base_s * 1.25e9 / net.frame_bytes)
    assert net.link().delay_us == 50
    assert Net(10, 100, 64, 256, cables=2).link().delay_us == 25


def test_a_queue_is_marked_from_a_seventh_of_a_round_trip_on() -> None:
    """And at half of the buffer at the latest."""
    roomy = Net(100, 100, 4096, 256)
    assert roomy.threshold_packets == math.ceil(roomy.product_packets / 7)
    assert Net(1, 5, 4096, 256).threshold_packets == 8  # less than a packet is in flight there
    small = Net(100, 1000, 64, 1024)
    assert small.threshold_bytes <= 64 * 1024 / 2 + small.frame_bytes


def test_what_binds_is_the_lower_of_link_and_slots() -> None:
    net = Net(10, 100, 64, 256)
    assert limit(net, 1000) == Limit(net.goodput_gbit(), "link")
    found = limit(net, 10)
    assert found.by == "slots"
    assert found.goodput_gbit == pytest.approx(10 * 8192e-9 / net.base_s)
    assert limit(net, 10, 0.1) == Limit(net.goodput_gbit(0.1), "link")


def test_promises_are_judged_by_means_and_beside_others() -> None:
    least = Promise("rate", 0.97, is_least=True)
    most = Promise("time", 0.5, is_least=False, relative_to="fixed")
    means = {
        "new": {"rate": Mean(0.98, 0.1, 3), "time": Mean(4, 0, 3)},
        "slow": {"rate": Mean(0.5, 0, 3), "time": Mean(9, 0, 3)},
        "fixed": {"rate": Mean(0.97, 0, 3), "time": Mean(10, 0, 3)},
    }
    assert [it.holds for it in judge([least, most], "new", means)] == [True, True]
    assert [it.holds for it in judge([least, most], "slow", means)] == [False, False]
    assert [it.value for it in judge([least, most], "slow", means)] == [0.5, 0.9]
    # Nobody is held to what he is himself, and nobody to what was not run.
    assert [it.holds for it in judge([least, most], "fixed", means)] == [True, None]
    del means["fixed"]
    assert [it.holds for it in judge([least, most], "new", means)] == [True, None]
    # A run that failed has no metrics.
    assert [it.holds for it in judge([least], "failed", {"failed": {}})] == [False]
    assert most.text == "time at most 0.5 times fixed's"


def test_a_plot_has_means_of_ranks_and_peaks_of_queues(history: History) -> None:
    found = series_of(history)
    assert len(found.at_ms) == 5
    assert found.windows["a"][0] == 6
    assert found.windows["a"][-1] == 3
    assert list(found.queues_kib) == ["y", "x"]
    assert max(found.queues_kib["y"]) == pytest.approx(5000 / 1024, abs=1e-5)
    assert max(found.goodput_gbit["a"]) == pytest.approx(1)
    # What both flows have, together: twice 125 kB in 4 ms.
    assert np.mean(found.goodput_gbit["tcp"]) == pytest.approx(0.5)
    assert np.mean(series_of(history, hosts=2).goodput_gbit["tcp"]) == pytest.approx(0.25)
