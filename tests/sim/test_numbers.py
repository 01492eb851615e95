"""Numbers that wrap, several aggregators, far networks: what the fuzzer draws, and that it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ina.p4 import compiled
from ina.sim import fabric
from ina.sim.causes import cause_of_end
from ina.sim.draw import draw
from ina.sim.reading import make
from ina.sim.report import Report
from ina.sim.run import Simulation
from ina.switch.targets import default_target
from tests.sim.number_bugs import compares_plainly

JOB = {"name": "j", "workers": 2, "slots": 8, "steps": 3, "tensors": [{"elems": 1000}]}


def run(**document: Any) -> Report:
    document = {"topology": {"hosts": 2}, "limit_s": 60, **document}
    return Simulation(make(document), 1, mend_at_s=1.0).run()


def test_the_fuzzer_draws_them() -> None:
    scenarios = [draw(seed) for seed in range(300)]
    jobs = [job for scenario in scenarios for job in scenario.job]
    assert len([job for job in jobs if job.wraps_after]) > len(jobs) // 4
    assert sum(scenario.controller.last_epoch > 0 for scenario in scenarios) > 75
    assert sum(scenario.controller.aggregators > 1 for scenario in scenarios) > 15
    assert sum(scenario.link.delay_us + scenario.link.jitter_us > 3e5 for scenario in scenarios) > 6


@pytest.mark.parametrize("verify", ["off", "accidents"])
def test_sequence_numbers_wrap(
    verify: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switch that takes the larger number for the newer one is found."""
    wrapping = {**JOB, "verify": verify, "wraps_after": 20}
    assert run(job=[wrapping]).violations == []
    program = json.loads(compiled(64).bmv2_json.read_text())
    compares_plainly(program)
    path = tmp_path / "bug.json"
    path.write_text(json.dumps(program))
    bad = default_target().read_and_build(path)
    monkeypatch.setattr(fabric, "_program", lambda values, mode: bad)
    assert run(job=[{**JOB, "verify": verify}]).violations == []
    (found,) = run(job=[wrapping]).violations
    assert (found.kind, "no result for 30.0 s" in found.what) == ("ended without a cause", True)


def test_epochs_of_one_job_after_the_other_wrap() -> None:
    report = run(job=[{**JOB, "at_ms": [0, 500, 1000]}], controller={"last_epoch": (1 << 16) - 2})
    assert report.violations == []
    assert len(report.jobs) == 3


def test_lanes_are_dealt_to_several_aggregators() -> None:
    report = run(
        switch={"mode": "shared", "shared_slots": 8},
        aggregator=[{"name": "agg1"}, {"name": "agg2"}],
        controller={"aggregators": 2, "sizing": "asked"},
        job=[{**JOB, "mode": "shared"}],
    )
    assert report.violations == []
    sent = {port.name: port.packets for port in report.ports}
    assert min(sent["agg1>s1"], sent["agg2>s1"]) > 0


@pytest.mark.parametrize(
    ("delay_us", "loss", "error", "is_excused"),
    [
        (1e6, 0.05, "rank 0: OperationTimeoutError: no result", False),
        (1e6, 0.06, "rank 0: OperationTimeoutError: no result", True),
        (4e6, 0.0, "rank 0: OperationTimeoutError: no result", True),
        (1e6, 0.0, "rank 0: WorkerLostError: rank 1 is dead", True),
        (1e3, 0.0, "rank 0: WorkerLostError: rank 1 is dead", False),
    ],
)
def test_far_links_are_no_cause_to_wait_in_vain(
    delay_us: float, loss: float, error: str, is_excused: bool
) -> None:
    scenario = make({"link": {"delay_us": delay_us, "loss": loss}, "job": [JOB]})
    assert bool(cause_of_end(scenario, scenario.job[0], error=error)) == is_excused
