"""Rates that links shared evenly leave a job."""

from __future__ import annotations

import pytest

from ina.sim.windows.fair import Flow, fair_rate

HOSTS = ("a", "b", "c")


def test_a_job_that_is_alone_has_the_links() -> None:
    assert fair_rate([], HOSTS, 100.0, 1.0, 2.0) == 100.0


def test_a_flow_has_half_of_its_links_until_it_is_served() -> None:
    flow = Flow(0.0, "a", "b", 150.0)
    assert fair_rate([flow], HOSTS, 100.0, 0.0, 4.0) == pytest.approx((50 * 3 + 100) / 4)


def test_the_link_with_most_flows_sets_the_rate_and_others_have_what_is_left() -> None:
    flows = [Flow(0.0, "a", "b", 100.0), Flow(0.0, "c", "b", 100.0), Flow(0.0, "a", "c", 200.0)]
    # All have a third, and the flow to c no more, for the job and another share a's link with it.
    third_s = 100 / (100 / 3)
    assert fair_rate(flows, HOSTS, 100.0, 0.0, third_s) == pytest.approx(100 / 3)
    assert flows[2].left_bytes == pytest.approx(200 - 100 / 3 * third_s)


def test_what_is_before_the_time_that_counts_does_not() -> None:
    flow = Flow(0.0, "a", "b", 50.0)
    assert fair_rate([flow], HOSTS, 100.0, 1.0, 2.0) == pytest.approx(100.0)
