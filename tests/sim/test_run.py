"""Scenarios from end to end: sums are right whatever goes wrong, and what is reported is so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ina.pcap import Capture, packets_of
from ina.protocol.spec import Kind
from ina.sim import tensors
from ina.sim.ladder import ladder, recorder
from ina.sim.minimise import minimise
from ina.sim.reading import make
from ina.sim.report import Report
from ina.sim.run import Simulation
from ina.sim.scenario import Scenario

SMALL = {"workers": 3, "steps": 3, "tensors": [{"elems": 3000}, {"elems": 500, "dtype": "int32"}]}
ROUGH = {
    **{"loss": 0.05, "duplication": 0.05, "corruption": 0.02, "burst_from": 0.002},
    **{"reordering": 0.05, "reordering_us": 500, "jitter_us": 20},
}


def scenario(**keys: Any) -> Scenario:
    document = {"job": [SMALL], "topology": {"hosts": 3}, "limit_s": 60, **keys}
    return make(document)


def run(**keys: Any) -> Report:
    return Simulation(scenario(**keys), 1, mend_at_s=10.0).run()


def test_a_clean_network_is_used_to_its_limit_and_loses_nothing() -> None:
    big = {"workers": 4, "steps": 2, "tensors": [{"elems": 400_000, "dtype": "int32"}]}
    report = run(job=[{**big, "verify": "off"}], topology={"hosts": 4}, link={"delay_us": 2})
    assert report.violations == []
    job = report.jobs[0]
    assert (job.steps_done, job.ended, job.resends_lost) == (2, "", 0)
    # 256 of 346 bytes are values at 10 Gbit/s; a step begins with an empty pipe.
    assert 0.97 < job.goodput_gbit_s / (10 * 256 / 346) <= 1.0
    assert report.sums_checked == 2 * 4
    assert all(port.lost_packets == 0 for port in report.ports)


@pytest.mark.parametrize("multicast", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32"])
def test_sums_are_right_over_links_that_nobody_would_call_so(dtype: str, multicast: bool) -> None:
    job = {**SMALL, "hosts": ["h1", "h2", "h1"], "tensors": [{"elems": 2000, "dtype": dtype}]}
    report = run(job=[job], link=ROUGH, multicast=multicast)
    assert report.violations == []
    assert report.sums_checked == 9
    assert report.jobs[0].resends_lost > 0


def test_links_that_damage_what_they_carry_give_wrong_sums_only_where_nobody_verifies() -> None:
    link = {"corruption": 0.01, "frame_check": False, "delay_us": 10}
    job = {**SMALL, "steps": 20, "verify": "off"}
    assert {found.kind for found in run(job=[job], link=link).violations} == {"wrong sum"}
    report = run(job=[{**job, "verify": "accidents"}], link=link)
    assert report.violations == []
    *failed, last = [one.ended for one in report.jobs]
    assert failed  # a damaged contribution is in its slot for good
    assert any("CorruptedSumError: job 'job' rank" in ended for ended in failed)
    assert last == ""


def test_a_wrong_reference_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle looks at each value: one unit of the last place is a violation."""
    honest = tensors.Place.right

    def off_by_one(place: tensors.Place, *args: Any) -> Any:
        out = honest(place, *args)
        if place.step == 2 and place.tensor == 1:
            out[499] += 1
        return out

    monkeypatch.setattr(tensors.Place, "right", off_by_one)
    found = run().violations
    assert len(found) == 3  # each rank's
    assert "step 2 tensor 1" in found[0].what
    assert "value 499 (chunk 7)" in found[0].what


@pytest.mark.parametrize(
    "fault",
    [
        {"what": "crash", "where": "job/1", "at_ms": 300},
        {"what": "power_cycle", "where": "s1", "at_ms": 300, "for_ms": 100},
        {"what": "link_down", "where": "h2-s1", "at_ms": 300, "for_ms": 700},
        {"what": "pause", "where": "job/0", "at_ms": 300, "for_ms": 500},
        {"what": "controller_kill", "at_ms": 300, "for_ms": 500},
        {"what": "controller_kill", "at_ms": 0, "for_ms": 500, "point": "install.stage_1"},
        {"what": "controller_cut", "at_ms": 300, "for_ms": 700},
        {"what": "link", "where": "s1>h1", "at_ms": 300, "for_ms": 700, "link": {"loss": 0.9}},
    ],
    ids=lambda fault: fault["what"],
)
def test_a_job_is_done_whatever_goes_wrong_once(fault: dict[str, Any]) -> None:
    job = {**SMALL, "steps": 12, "compute_ms": 100}
    report = run(job=[job], fault=[fault])
    assert report.violations == []
    assert any(fault["what"] in line for line in report.events)
    assert report.jobs[-1].ended == ""
    ends = [one.ended for one in report.jobs[:-1]]
    if fault["what"] == "crash":
        assert len(ends) == 1
        assert "WorkerLostError" in ends[0]
        assert "rank 1 (10.0.0.2:4000) has died" in ends[0]
    elif fault["what"] == "power_cycle":
        assert len(ends) == 1
    else:
        assert len(ends) <= (1 if fault.get("point") else 0)


def test_the_same_seed_is_the_same_run_byte_for_byte(tmp_path: Path) -> None:
    faults = [{"what": "crash", "where": "job/1", "at_ms": 30}]

    def once(name: str, seed: int) -> tuple[bytes, list[str]]:
        path = tmp_path / name
        simulation = Simulation(scenario(link=ROUGH, fault=faults), seed, trace=recorder(0, path))
        simulation.run()
        return path.read_bytes(), simulation.control_log

    first = once("a.pcap", 1)
    assert first == once("b.pcap", 1)
    assert first != once("c.pcap", 2)


def test_captures_and_ladders_show_the_packets(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    trace = recorder(100_000, path)
    job = {"workers": 2, "steps": 1, "tensors": [{"elems": 128, "dtype": "int32"}]}
    link = {"loss": 0.2, "delay_us": 10}
    report = Simulation(scenario(job=[job], link=link), 3, trace=trace).run()
    packets = [packet for frame in Capture(path) for packet in packets_of(frame)]
    kinds = {packet.header.kind for packet in packets if packet.header}
    assert kinds == {Kind.CONTRIBUTION, Kind.RESULT}
    lines = list(ladder(trace.records(), trace.ports))
    assert lines[0].split() == ["h1", "s1", "h2"]
    assert sum(line.endswith("lost") for line in lines) == sum(
        port.lost_packets for port in report.ports
    )
    assert any("c0/0" in line and ">" in line for line in lines)
    assert any("r0/1" in line for line in lines)


def test_a_scenario_is_made_as_small_as_still_fails() -> None:
    big = scenario(
        job=[{**SMALL, "name": "a"}, {**SMALL, "name": "b", "workers": 3}],
        link=ROUGH,
        fault=[{"what": "pause", "where": "a/2", "at_ms": 1}],
    )

    def fails(candidate: Scenario) -> bool:
        """As if three workers over a link that duplicates were enough."""
        return candidate.link.duplication > 0 and any(job.workers >= 3 for job in candidate.job)

    least = minimise(big, fails)
    assert len(least.job) == 1
    assert (least.job[0].workers, least.job[0].steps, len(least.job[0].tensors)) == (3, 1, 1)
    assert least.fault == []
    assert (least.link.loss, least.link.corruption, least.link.duplication) == (0.0, 0.0, 0.05)
    assert msgspec.json.decode(msgspec.json.encode(least), type=Scenario) == least
