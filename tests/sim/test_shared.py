"""Jobs of mode shared in the virtual network: slots that they share, who makes their results."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from ipaddress import IPv4Address
from itertools import pairwise
from typing import Any

import pytest

from ina.modes import rows
from ina.modes.rows import Neighbour, Place
from ina.p4 import names
from ina.protocol.peer import Peer
from ina.protocol.spec import PARENT
from ina.sim.draw import draw
from ina.sim.errors import ScenarioError
from ina.sim.fabric import SimSwitch
from ina.sim.minimise import minimise
from ina.sim.reading import check, make
from ina.sim.report import Report
from ina.sim.run import Simulation
from ina.sim.scenario import Scenario
from ina.tables.values import Entry

TENSORS = [{"elems": 3000}, {"elems": 500, "dtype": "int32"}, {"elems": 700, "op": "avg"}]
STAR = {"hosts": 4}
RACKS = {"kind": "racks", "racks": [2, 2]}
PODS = {"kind": "racks", "racks": [2, 1, 1], "pod": 2}
CONFIGURED = {"aggregator": [{"name": "agg1", "switch": "s1"}, {"name": "agg2", "switch": "s1"}]}
ELSEWHERE = {
    "aggregator": [{"name": "agg1", "switch": "l2"}]
}  # behind another switch than the root
EMBEDDED = {
    "aggregator": [
        {"name": "own_a", "switch": "s1", "job": "a"},
        {"name": "own_b", "switch": "s1", "job": "b"},
    ]
}
OF_FABRIC = {"switch": {"aggregators": ["s1"]}}
OF_PODS = {"switch": {"aggregators": ["s1", "a1"]}}
JOBS: list[dict[str, Any]] = [
    {"name": "a", "mode": "shared", "hosts": ["h1", "h2", "h3"]},
    {"name": "b", "mode": "shared", "hosts": ["h1", "h4"], "priority": 4},
    {"name": "p", "hosts": ["h2", "h3"]},
]


def document(topology: dict[str, Any], *changes: dict[str, Any], **more: Any) -> dict[str, Any]:
    switch = {"mode": "shared", "shared_slots": 2, "slot_age_us": 500}
    jobs = [
        {"workers": len(job["hosts"]), "slots": 8, "steps": 3, "tensors": TENSORS, **job}
        for job in JOBS
    ]
    found = {"topology": topology, "controller": {"sizing": "asked"}, "job": jobs, **more}
    for change in changes:
        switch |= change.get("switch", {})
        found |= change
    return {**found, "switch": switch}


def run(topology: dict[str, Any], *changes: dict[str, Any], **more: Any) -> Report:
    return Simulation(make(document(topology, *changes, **more)), 1, mend_at_s=1.0).run()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What switches and aggregators have counted, as they are closed, by counter and kind."""
    found: Counter[str] = Counter()
    power_off = SimSwitch.power_off

    def count(switch: SimSwitch) -> None:
        if switch.pipeline is not None:
            where = "aggregator" if switch.name.startswith(("agg", "own_")) else "switch"
            for counter in names.job_counters(names.SHARED):
                each = (switch.count(counter, job) for job in range(names.JOBS_TOTAL))
                found[f"{where} {counter.rpartition('job_')[2]}"] += sum(each)
        power_off(switch)

    monkeypatch.setattr(SimSwitch, "power_off", count)
    return found


@pytest.mark.parametrize(
    ("topology", "change"),
    [
        *((STAR, change) for change in (CONFIGURED, EMBEDDED)),
        *((RACKS, change) for change in (CONFIGURED, ELSEWHERE, EMBEDDED, OF_FABRIC)),
        *((PODS, change) for change in (CONFIGURED, EMBEDDED, OF_PODS)),
    ],
)
def test_jobs_that_share_two_slots_have_exact_sums(
    topology: dict[str, Any], change: dict[str, Any], counted: Counter[str]
) -> None:
    """Beside a job with slots of its own; and lost, doubled and late packets."""
    link = {"loss": 0.03, "duplication": 0.03, "reordering": 0.05, "reordering_us": 300}
    report = run(topology, change, link=link, link_up=link)
    assert report.violations == []
    assert [(job.name, job.steps_done, job.ended) for job in report.jobs] == [
        (name, 3, "") for name in "abp"
    ]
    assert report.sums_checked == (3 + 2 + 2) * 3 * len(TENSORS)
    assert counted["switch contributions"] > 0
    assert counted["switch missed"] > 0
    if "aggregator" in change:
        assert counted["aggregator results"] > 100


def test_who_is_more_important_puts_others_out_of_their_slots(counted: Counter[str]) -> None:
    """Ranks are late in turn, so that sums stay open in the two slots; and both jobs have more in
    flight than there are slots, so that they do not take turns."""
    late = {"slots": 16, "tensors": [{"elems": 6400}], "straggler": {"share": 0.5, "mean_ms": 0.01}}
    jobs = [{**job, **late, "steps": 60} for job in document(STAR)["job"][:2]]
    report = run(STAR, CONFIGURED, job=jobs)
    assert report.violations == []
    assert counted["switch evictions"] > 0
    assert counted["switch collisions"] > 0


def test_lanes_that_claim_no_slot_for_others_want_it_have_exact_sums(
    counted: Counter[str],
) -> None:
    """Under A2TP's windows, with a worker behind a slow link, whose sums are open for long. Workers
    agree on what claims: none takes another's part along."""
    late = {"slots": 64, "tensors": [{"elems": 40 * 6400}], "priority": 0}
    jobs = [{**job, **late} for job in document(STAR)["job"][:2]]
    slow = {"what": "link", "where": "h4-s1", "at_ms": 0, "for_ms": 1e6, "link": {"rate_gbit": 1}}
    some = {"congestion": {"algorithm": "a2tp"}, "job": jobs, "switch": {"shared_slots": 32}}
    report = run(STAR, CONFIGURED, some, fault=[slow])
    assert report.violations == []
    assert counted["switch collisions"] > 0
    assert counted["switch bypassed"] == 0
    assert counted["switch missed"] > 1000
    # A packet that is slower than its worker thinks is sent again, and makes one flush: by the
    # moment at which windows are told, there are one or none of 50,000.
    assert counted["switch flushes"] <= 2
    assert counted["switch replays"] == counted["switch late"] == 0


def a_fault(what: str, where: str) -> dict[str, Any]:
    """While jobs reduce."""
    jobs = [{**job, "steps": 20, "compute_ms": 5} for job in document(STAR)["job"]]
    return {"fault": [{"what": what, "where": where, "at_ms": 150, "for_ms": 50}], "job": jobs}


def ends(report: Report) -> set[str]:
    return {job.name for job in report.jobs if job.ended}


def test_a_switch_that_forgets_its_slots_is_a_pause_for_jobs_that_share_them() -> None:
    report = run(STAR, CONFIGURED, a_fault("power_cycle", "s1"))
    assert report.violations == []
    assert ends(report) == {"p"}  # which has slots of its own


def test_an_aggregator_that_dies_ends_its_jobs_as_a_switch_does() -> None:
    report = run(STAR, CONFIGURED, a_fault("power_cycle", "agg1"))
    assert report.violations == []
    assert ends(report) == {"a", "b"}
    assert all("agg1" in job.ended for job in report.jobs if job.ended)


def test_an_embedded_aggregator_dies_with_its_rank() -> None:
    report = run(STAR, EMBEDDED, a_fault("crash", "a/0"))
    assert report.violations == []
    assert ends(report) == {"a"}
    again = run(STAR, EMBEDDED, a_fault("crash", "a/2"))
    assert again.violations == []
    assert ends(again) == {"a"}


def test_a_rank_that_stops_keeps_its_slots_for_no_longer_than_their_age() -> None:
    """The other job goes on; it stops at the first sum that finds its part missing."""
    report = run(STAR, CONFIGURED, a_fault("pause", "a/1"), controller={"lease_s": 5})
    assert report.violations == []
    assert ends(report) == set()


def test_whom_a_stalled_job_waits_for_is_found_where_rank_0_makes_its_results() -> None:
    fault = a_fault("link_down", "own_a-s1")
    fault["fault"][0]["for_ms"] = 6000
    simulation = Simulation(make(document(STAR, EMBEDDED, fault)), 1, mend_at_s=10.0)
    report = simulation.run()
    assert report.violations == []
    assert ends(report) == set()


@pytest.mark.parametrize("change", [CONFIGURED, EMBEDDED])
def test_a_job_gets_another_mode_and_other_slots_while_it_reduces(change: dict[str, Any]) -> None:
    """To slots of its own, back to shared ones with a larger window, and to more of them."""
    jobs = [{**job, "steps": 60, "compute_ms": 5} for job in document(STAR)["job"]]
    orders: list[dict[str, Any]] = [
        {"mode": "pool"},
        {"mode": "shared", "slots": 16},
        {"slots": 32},
    ]
    faults = [
        {"what": "resize", "where": "a", "at_ms": 130 + 60 * i, **order}
        for i, order in enumerate(orders)
    ]
    report = run(STAR, change, job=jobs, fault=faults)
    assert report.violations == []
    assert [(job.name, job.steps_done, job.ended) for job in report.jobs] == [
        (name, 60, "") for name in "abp"
    ]
    assert [line for line in report.events if "no resize" in line] == []
    assert report.jobs[0].window_packets == 16


def test_a_tenant_claims_no_more_than_its_quota(counted: Counter[str]) -> None:
    controller = {"sizing": "asked", "quotas": {"one": 1, "all": 0}}
    jobs = [{**job, "mode": "shared", "tenant": "one"} for job in document(STAR)["job"]]
    report = run(STAR, CONFIGURED, controller=controller, job=jobs)
    assert report.violations == []
    assert [job.ended for job in report.jobs] == ["", "", ""]
    assert counted["switch bypassed"] > 100


def test_who_gives_up_on_links_that_were_mended_long_ago_has_no_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Links that lose a third are one. What a job sends to its aggregator gets nowhere at first."""
    honest = rows.receiver

    def elsewhere(at: Place, index: int, child: Neighbour) -> Entry:
        if index == PARENT and at.part.number == 1 and at.part.epoch <= len(JOBS):
            child = replace(child, peer=Peer(IPv4Address("10.255.9.9"), 1))
        return honest(at, index, child)

    monkeypatch.setattr(rows, "receiver", elsewhere)
    scenario = make(document(STAR, CONFIGURED, link={"loss": 0.3}))
    for mend_at_s, kinds in ((1.0, ["ended without a cause"]), (25.0, [])):
        simulation = Simulation(scenario, 1, mend_at_s=mend_at_s)
        simulation.run()
        assert [found.kind for found in simulation.violations] == kinds


def test_what_is_left_of_a_claim_is_found() -> None:
    """An entry that nobody's job wants, and a slot that seems to be in use."""
    scenario = make(document(STAR, CONFIGURED))
    simulation = Simulation(scenario, 1, mend_at_s=1.0)
    leave = Entry(names.OWNERS, (("epoch", 7),), names.OWNER_IS, tuple(
        (name, 0) for name in ("job", "job_index", "full_bitmap", "parent_port", "own_worker",
                               "own_level")
    ))  # fmt: skip

    def program(fabric: Any, switch: SimSwitch) -> None:
        switch.insert(fabric.forwarding(switch.name))
        if switch.name == "s1":
            switch.insert([leave])

    simulation._program = program  # type: ignore[method-assign]
    simulation.run()
    (found,) = simulation.violations
    assert found.kind == "left behind"
    assert names.OWNERS in found.what


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"switch": {"mode": "pool"}}, "switch.shared_slots: only with switch.mode = 'shared'"),
        (
            {"job": [{"name": "r", "workers": 1, "hosts": ["h1"], "mode": "roce"}]},
            "mode 'roce': want switch.mode = 'roce', too",
        ),
        ({"aggregator": []}, "job 'a': mode 'shared': switch 's1' reaches no aggregator"),
        ({"aggregator": [{"name": "x", "job": "p"}]}, "job 'p': want a job of mode 'shared', once"),
        ({"aggregator": [{"name": "x", "job": "a"}]}, "job 'b': mode 'shared': switch 's1' reach"),
        (
            {"aggregator": [{"name": "x"}, {"name": "y", "job": "a"}]},
            "ranks run one where the controller has none",
        ),
        ({"aggregator": [{"name": "x", "switch": "h1"}]}, "no P4 switch is called 'h1'"),
        ({"aggregator": [{"name": "s1"}]}, "the name 's1' is there twice"),
        ({"switch": {"aggregators": ["s2"]}}, "no P4 switch is called 's2'"),
        ({"switch": {"shared_slots": 8192}}, "switch.shared_slots = 8192: want 0 to 8190"),
        ({"controller": {"quotas": {"x": 1}}}, "job 'a': tenant '': want one of quotas"),
    ],
)
def test_what_cannot_be_is_said(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words.replace("(", r"\(")):
        make(document(STAR, CONFIGURED, change))


def test_a_tree_with_all_levels_has_none_left_for_an_aggregator() -> None:
    hosts, switches = [f"h{i}" for i in range(7)], [f"s{i}" for i in range(7)]
    cables = [*zip(hosts, switches, strict=True), *pairwise(switches)]
    topology = {
        "kind": "graph",
        "names": hosts,
        "switches": dict.fromkeys(switches, "p4"),
        "cables": [{"one": one, "other": other} for one, other in cables],
    }
    job = {"workers": 7, "hosts": hosts, "mode": "shared"}
    make(document(topology, job=[{**job, "mode": "pool"}]))
    with pytest.raises(ScenarioError, match="a tree has at most 4 levels"):
        make(document(topology, CONFIGURED, job=[job]))


def test_what_shares_slots_is_made_small() -> None:
    """To one job with one aggregator; where that is not needed, to none."""
    scenarios = (draw(seed) for seed in range(100))
    several = next(it for it in scenarios if len(it.job) > 2 and len(it.aggregator) > 2)

    def has_an_aggregator(scenario: Scenario) -> bool:
        check(scenario)
        return bool(scenario.aggregator)

    def holds(scenario: Scenario) -> bool:
        check(scenario)
        return True

    least = minimise(several, has_an_aggregator)
    assert (len(least.job), len(least.aggregator), least.fault) == (1, 1, [])
    assert least.controller.quotas == {}
    assert least.job[0].priority == 0
    assert minimise(several, holds).switch.mode == "pool"


def test_the_fuzzer_draws_all_of_it() -> None:
    scenarios = [draw(seed) for seed in range(150)]
    sharing = [it for it in scenarios if it.switch.mode == "shared"]
    assert 40 <= len(sharing) <= 80
    for scenario in sharing:
        check(scenario)
    drawn = {
        "of the fabric": any(it.switch.aggregators for it in sharing),
        "embedded": any(one.job for it in sharing for one in it.aggregator),
        "configured": any(not one.job for it in sharing for one in it.aggregator),
        "pool beside shared": any(len({job.mode for job in it.job}) == 2 for it in sharing),
        "racks": any(it.topology.kind == "racks" for it in sharing),
        "priorities": any(job.priority for it in sharing for job in it.job),
        "quotas": any(it.controller.quotas for it in sharing),
        "one slot": any(it.switch.shared_slots == 1 for it in sharing),
        "an aggregator that dies": any(
            fault.what == "power_cycle" and fault.where.startswith("agg")
            for it in sharing
            for fault in it.fault
        ),
    }
    assert [what for what, is_there in drawn.items() if not is_there] == []


def test_where_switches_make_results_no_placement_moves_the_roots_that_were_drawn() -> None:
    """The controller would refuse such jobs for ever."""
    scenarios = [draw(seed) for seed in (*range(100), 40005)]
    found = [it for it in scenarios if it.switch.aggregators]
    assert len(found) > 2
    assert {it.controller.placement for it in found} == {"nearest"}
