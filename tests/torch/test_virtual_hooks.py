"""The hooks with feedback over the virtual network: what ships, with loss and ranks that die."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from ina.sim.draw import draw
from ina.sim.errors import ScenarioError
from ina.sim.fuzz import try_scenario
from ina.sim.reading import check
from ina.sim.scenario import (
    HOOKS,
    FaultSpec,
    Hook,
    JobSpec,
    LinkSpec,
    Scenario,
    TensorSpec,
    TopologySpec,
)
from ina.torch.virtual import Sum, VirtualHook
from tests.selection import examples

TENSORS = [TensorSpec(elems=3_000), TensorSpec(elems=77, count=2)]
CRASH = FaultSpec(what="crash", where="job/1", at_ms=600.0, for_ms=1.0)
"""In the third of five steps, 200 ms each, after 100 to join."""


def scenario(hook: Hook, **changes: Any) -> Scenario:
    job = JobSpec(workers=3, steps=5, hook=hook, tensors=TENSORS, compute_ms=200.0)
    link = LinkSpec(loss=0.02, duplication=0.02, reordering=0.05, reordering_us=200.0)
    made = Scenario(topology=TopologySpec(hosts=3), link=link, job=[job])
    return replace(made, **changes)


def kinds(scenario: Scenario) -> set[str]:
    report = try_scenario(scenario, 1).report
    assert report is not None
    assert report.sums_checked > 0
    return {violation.kind for violation in report.violations}


@pytest.mark.parametrize("hook", HOOKS)
def test_averages_are_right_also_from_a_checkpoint(hook: Hook) -> None:
    simulation = try_scenario(scenario(hook, fault=[CRASH]), 1)
    report = simulation.report
    assert report is not None
    assert report.violations == []
    assert [0 < one.steps_done < 5 for one in report.jobs] == [True, True]
    assert sum(one.steps_done for one in report.jobs) == 5
    assert report.sums_checked >= 3 * 3 * 5


@pytest.mark.parametrize("hook", HOOKS)
def test_a_checkpoint_without_what_was_kept_is_found(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgets(self: VirtualHook, state: dict[str, Any]) -> None:
        self._buckets.load_state_dict({"kept": {}, "step": state["step"]})

    monkeypatch.setattr(VirtualHook, "load", forgets)
    assert kinds(scenario(hook, fault=[CRASH])) == {"wrong sum"}


def test_a_rank_that_chooses_blocks_of_its_own_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = VirtualHook.second

    def other(self: VirtualHook, begun: Any) -> Sum | None:
        if self.rank == 1 and begun.goes_twice:
            norms = begun.first.tensor
            norms.copy_(norms.flip(0))
        return right(self, begun)

    monkeypatch.setattr(VirtualHook, "second", other)
    assert kinds(scenario("topk")) == {"wrong sum"}


def test_nobody_keeps_anything_of_a_bucket_with_inf() -> None:
    hook = VirtualHook("lowbit8", [4], 0, 2)
    gradients = np.array([1.0, np.inf, 2.0, 3.0], np.float32)
    begun, _ = hook.begin(gradients)
    assert hook.second(begun) is None
    hook.write(begun)
    assert np.isnan(gradients).all()
    assert hook.state()["kept"] == {}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"tensors": [TensorSpec(elems=5, dtype="int32")]}, "want tensors of float32"),
        ({"tensors": [TensorSpec(elems=0)]}, "want tensors of float32"),
        ({"workers": 17}, "columns of 8 bits have room for sums of 16 workers"),
        ({"check": False}, "its sums are checked: want check = true"),
    ],
    ids=["int32", "nothing", "too many", "not checked"],
)
def test_a_job_that_a_hook_is_not_for(change: dict[str, Any], why: str) -> None:
    made = scenario("lowbit8", topology=TopologySpec(hosts=17))
    with pytest.raises(ScenarioError, match=f"job 'job': hook lowbit8: {why}"):
        check(replace(made, job=[replace(made.job[0], **change)]))


def test_without_pytorch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ScenarioError, match="pip install torch"):
        try_scenario(scenario("topk"), 1)


def test_the_fuzzer_draws_hooks_and_finds_nothing() -> None:
    seeds = (seed for seed in range(10_000) if any(job.hook for job in draw(seed).job))
    for _ in range(examples(3)):
        seed = next(seeds)
        assert try_scenario(draw(seed), seed).violations == [], seed
