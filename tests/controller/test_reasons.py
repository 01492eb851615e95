"""Why a job has as many slots as it has: what its policy went by, and who asked for it."""

from __future__ import annotations

from typing import Any

import pytest

from ina.controller.memory.demand import Demand, StepModel
from ina.controller.memory.policies import reason
from tests.worlds.fakes.sizing import Bench

STEPS = StepModel(
    compute_s=0.0, overlap_s=0.0, bytes=1e8, lane_bytes_per_s=1e7, line_bytes_per_s=2e9
)
"""Of use: 512 slots, with which the line is full."""


def demand(name: str = "j", **keys: Any) -> Demand:
    return Demand(name, STEPS, 100.0, floor=16, **keys)


@pytest.mark.parametrize(
    ("policy", "job", "slots", "others", "said"),
    [
        (
            "priority",
            demand(priority=2),
            16,
            [demand("a", priority=5), demand("b", priority=2), demand("c", priority=2)],
            "priority 2, 1 job above, 2 jobs alike: its floor of 16, 512 are of use to it",
        ),
        ("priority", demand(priority=9), 512, [], "priority 9: all of use to it"),
        ("equal", demand(), 256, [demand("a")], "1 job beside it: 256, 512 are of use to it"),
        ("equal", demand(asked=64), 64, [], "alone: all that it asked for"),
        ("jct", demand(), 256, [], "5 s to go with 512: 256, 512 are of use to it"),
        (
            "deadline",
            demand(deadline_s=90.0),
            512,
            [],
            "deadline in 1 min 30 s, 5 s to go",
        ),
        (
            "deadline",
            demand(deadline_s=-1.0),
            16,
            [],
            "deadline over, 5 s to go with 512: its floor",
        ),
        ("deadline", demand(), 16, [], "no deadline: its floor of 16"),
    ],
)
def test_a_reason_says_what_the_policy_went_by(
    policy: str, job: Demand, slots: int, others: list[Demand], said: str
) -> None:
    assert reason(policy, job, slots, others).startswith(f"policy {policy}: {said}")


async def test_the_history_says_why_and_for_whom_and_what_an_operator_asked_for() -> None:
    bench = Bench("priority")
    await bench.start()
    low = await bench.run("low", priority=1)
    bench.learn(low, 32)
    await bench.settle()
    await bench.run("high", priority=5)
    decisions = bench.memory.decisions
    said = {(it.what, it.job): it.reason for it in decisions.of("")}
    assert said["grow", "low"] == "policy priority: priority 1: all of use to it"
    shrink = said["shrink", "low"]
    assert shrink.startswith("policy priority: priority 1, 1 job above: ")
    assert shrink.endswith("64 are of use to it; makes room for 'high'")
    assert said["grant", "high"].startswith("policy priority: priority 5: ")
    before = low.slots
    await bench.racks.coordinator.changes.resize("low", before // 2, "a test")
    bench.memory.resized_by_hand(low, before, "")
    (asked,) = [it for it in decisions.of("low") if "operator" in it.reason]
    assert (asked.what, asked.slots_before, asked.slots) == ("shrink", before, before // 2)
    assert asked.reason.startswith("an operator asked for it; until policy priority wants")


@pytest.mark.parametrize(
    ("asked", "said"), [(0, "it did not ask for another number"), (16, "it asked for 16")]
)
async def test_without_resizes_it_has_what_is_usual_or_what_it_asked_for(
    asked: int, said: str
) -> None:
    bench = Bench("static")
    await bench.start()
    await bench.run("j", asked=asked)
    (granted,) = bench.memory.decisions.of("j")
    assert granted.reason == f"policy static: {said}"
