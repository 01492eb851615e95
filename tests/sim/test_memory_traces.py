"""Traces of jobs through the controller, under each memory policy, in virtual time."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ina.cli import main
from ina.controller.config import JobsConfig
from ina.sim.errors import ScenarioError
from ina.sim.memory.atp import share
from ina.sim.memory.compare import ATP, compare, run_one
from ina.sim.memory.outcome import Outcome, of_seeds, outcome
from ina.sim.memory.run import run_trace
from ina.sim.memory.trace import TracedJob, draw_trace, mean_useful_lanes

SLOTS = 8192
LANES = SLOTS // 2


def alone(**more: float) -> TracedJob:
    (job,) = draw_trace(1, 1, 1.0)
    return replace(job, **{"comes_s": 0.0, **more})  # type: ignore[arg-type]


def run(policy: str, jobs: list[TracedJob], *, aggregator: bool = True) -> Outcome:
    config = JobsConfig(policy=policy)  # type: ignore[arg-type]
    return run_trace(jobs, config, slots=SLOTS, aggregator=aggregator)


def test_a_trace_is_that_of_its_seed() -> None:
    trace = draw_trace(7, 600, 24.0)
    assert trace == draw_trace(7, 600, 24.0) != draw_trace(8, 600, 24.0)
    assert 320 < mean_useful_lanes(trace) < 380
    # Little's law: so many jobs at a time, each as long as it lasts.
    offered = sum(job.lasts_s for job in trace) / trace[-1].comes_s
    assert offered == pytest.approx(24.0, rel=0.15)
    assert all(job.deadline_s >= job.comes_s + 1.2 * job.lasts_s for job in trace)
    with pytest.raises(ScenarioError, match="a trace of 0 jobs"):
        draw_trace(1, 0, 24.0)


def test_alone_a_job_takes_as_long_as_it_lasts() -> None:
    job = alone()
    (ended,) = share([job], LANES)
    assert ended.slowdown == pytest.approx(1.0)
    done = run("jct", [job])
    # Until the controller knows it and it has grown, which takes some heartbeats, it is slower.
    assert 1.0 <= done.mean_slowdown < 1.1
    assert done.most_resizes <= 2


def test_shared_as_atp_does_two_jobs_get_what_both_want_of_the_lanes() -> None:
    job = alone(deadline_s=1e9)
    two = [replace(job, name=name, workers=4) for name in ("a", "b")]
    want = job.bytes / 0.2 / (256 / 20e-6)
    lanes = int(want)  # half for each; a quarter of the link is its server's
    ended = share(two, lanes)
    rate = 12.5e9 / 4 + 0.75 * lanes / 2 * 256 / 20e-6
    assert [it.slowdown for it in ended] == [pytest.approx(max(1.0, job.bytes / rate / 0.2))] * 2


def test_policies_do_what_they_are_for() -> None:
    # All come at about the same time: 24 of them want twice what there is.
    trace = [replace(job, steps=300, lasts_s=60.0) for job in draw_trace(3, 24, 500.0)]
    trace = [replace(job, deadline_s=job.comes_s + 120.0) for job in trace]
    static, jct, deadline = (run(policy, trace) for policy in ("static", "jct", "deadline"))
    assert static.jobs == jct.jobs == deadline.jobs == 24
    assert static.mean_resizes == 0 < jct.mean_resizes < 10
    assert jct.mean_slowdown < static.mean_slowdown
    assert deadline.missed_share < static.missed_share


def test_the_same_trace_ends_the_same() -> None:
    trace = draw_trace(5, 4, 24.0)
    once, again = (replace(run("deadline", trace), decision_ms=0.0) for _ in range(2))
    assert once == again


def test_without_an_aggregator_who_waits_stands_still() -> None:
    job = alone(lasts_s=100.0, steps=500)
    many = [replace(job, name=f"j{number}") for number in range(17)]
    done = run("static", many, aggregator=False)  # there are 16 ranges
    first, last = 1.0, done.p99_slowdown
    assert last == pytest.approx(2 * (done.mean_slowdown * 17 - last) / 16, rel=0.05)
    assert last > 2 * first


def test_outcomes_of_seeds_are_means_and_the_most() -> None:
    one = outcome("a", share([alone()], LANES), 1e-3)
    other = replace(one, mean_slowdown=3.0, most_resizes=7, decision_ms=4.0)
    both = of_seeds([one, other])
    assert (both.jobs, both.mean_slowdown) == (2, 2.0)
    assert (both.most_resizes, both.decision_ms) == (7, 4.0)


def test_the_command_prints_a_line_a_policy(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--policy", ATP, "--policy", "equal", "--jobs", "3", "--seeds", "2"]
    assert main.run(["sim", "compare", "memory", *words, "--processes", "2", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [it["policy"] for it in shown] == [ATP, "equal"]
    assert [it["jobs"] for it in shown] == [6, 6]
    assert shown[0] == {
        **shown[0],
        "mean_slowdown": pytest.approx(
            sum(run_one(ATP, seed, 3, 24.0, aggregator=True).mean_slowdown for seed in (1, 2)) / 2
        ),
    }
    assert main.run(["sim", "compare", "memory", "--policy", "best"]) == 2
    assert "policy 'best': there are static, ATP-like, equal" in capsys.readouterr().err


def test_nothing_to_compare_is_refused() -> None:
    with pytest.raises(ScenarioError, match="want a policy and a seed"):
        compare([], [1], jobs=1, offered=1.0, aggregator=True)
