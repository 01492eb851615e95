"""Jobs of RDMA NICs in the virtual network: endpoints, programs and controller that ship."""

from __future__ import annotations

from typing import Any

import pytest

from ina.p4.names import POOL, ROCE, TRANSPARENT
from ina.protocol.roce import ring_psn
from ina.sim.errors import ScenarioError
from ina.sim.fuzz import try_scenario
from ina.sim.ladder import label, recorder
from ina.sim.minimise import minimise
from ina.sim.reading import make
from ina.sim.run import Simulation

BAD = {
    "rate_gbit": 1,
    "loss": 0.02,
    "duplication": 0.02,
    "reordering": 0.02,
    "reordering_us": 200,
    "corruption": 0.02,
    "frame_check": False,
}
"""Nobody but who looks at ICRC knows what is damaged."""
JOB = {"workers": 4, "steps": 2, "wraps_after": 20, "slots": 8, "tensors": [{"elems": 3_000}]}


def of(mode: str, job: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    own = {**JOB, "mode": mode, **(job or {})}
    return {"values": 56, "switch": {"mode": mode}, "link": BAD, "job": [own], **more}


@pytest.mark.parametrize(
    ("mode", "topology", "racks"),
    [
        (ROCE, {"hosts": 3}, 1),
        (ROCE, {"kind": "racks", "racks": [2, 3], "pod": 1}, 2),
        (TRANSPARENT, {"hosts": 3}, 1),
    ],
)
def test_sums_are_exact_though_nobody_but_nics_finds_what_is_damaged(
    mode: str, topology: dict[str, Any], racks: int
) -> None:
    scenario = make(of(mode, {"racks": racks}, topology=topology))
    simulation = Simulation(scenario, 1, mend_at_s=20.0)
    report = simulation.run()
    assert report.violations == []
    assert [job.ended for job in report.jobs] == [""]
    assert report.sums_checked == 8
    (job,) = simulation.jobs.values()
    assert job.incarnations[-1].total("damaged") > 0
    assert job.incarnations[-1].total("corrupted") == 0


def test_a_ring_whose_switch_has_lost_its_power_ends_and_no_sum_is_wrong() -> None:
    """What was acknowledged is not sent again."""
    fault = {"what": "power_cycle", "where": "s1", "at_ms": 150, "for_ms": 5}
    slow = {**BAD, "rate_gbit": 0.05}
    scenario = make({**of(TRANSPARENT, {"steps": 4}, fault=[fault]), "link": slow})
    report = try_scenario(scenario, 1).report
    assert report is not None
    assert report.violations == []
    assert [bool(job.ended) for job in report.jobs] == [True, False]
    assert report.sums_checked >= 16


@pytest.mark.parametrize(
    ("scenario", "text"),
    [
        (of(ROCE, values=64), "values = 64: there are builds for 56, 248 and 1016"),
        (of(ROCE, multicast=True), "multicast: of mode 'roce', whose results are each a connect"),
        (of(ROCE, {"mode": POOL}), "job 'job': mode 'pool': want switch.mode = 'pool', too"),
        (of(POOL, {"mode": ROCE}, values=64), "mode 'roce': want switch.mode = 'roce', too"),
        (
            of(TRANSPARENT, {"racks": 2}, topology={"kind": "racks", "racks": [4, 4]}),
            "job 'job': mode 'transparent' sums at one P4 switch that all workers are at, and",
        ),
        (
            of(
                TRANSPARENT,
                topology={
                    "kind": "graph",
                    "names": ["h1"],
                    "switches": {"s1": "plain", "s2": "p4"},
                    "cables": [{"one": "h1", "other": "s1"}, {"one": "s1", "other": "s2"}],
                },
            ),
            "and these are at s1",
        ),
    ],
)
def test_what_nics_do_not_do_is_refused(scenario: dict[str, Any], text: str) -> None:
    with pytest.raises(ScenarioError, match=text):
        make(scenario)


def test_a_scenario_that_fails_is_made_small() -> None:
    """Without NICs, unless they matter."""
    scenario = make(of(TRANSPARENT, values=248))
    plain = minimise(scenario, lambda _it: True)
    ring = minimise(scenario, lambda it: it.switch.mode == TRANSPARENT)
    assert [(it.values, it.job[0].mode) for it in (plain, ring)] == [(64, POOL), (56, TRANSPARENT)]


def test_a_ladder_has_what_is_in_sends_and_what_nics_say() -> None:
    trace = recorder(1000, None)
    job = {"workers": 2, "steps": 1, "tensors": [{"elems": 50, "dtype": "int32"}], "wraps_after": 0}
    scenario = make({**of(TRANSPARENT, job), "link": {}})
    assert Simulation(scenario, 1, trace=trace).run().sums_checked == 2
    said = {label(record) for record in trace.records()}
    assert said == {"c0/0", "c0/1", "r0/0", "r0/1", f"ack {ring_psn(1)}"}
