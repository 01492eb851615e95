"""What every policy owes, on networks that Hypothesis draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from ina.controller.config.rules import PLACEMENTS
from ina.controller.errors import RoutingError
from ina.controller.routing.bounds import cut_bound
from ina.controller.routing.judge import judge, problems
from ina.controller.routing.loads import loads_of
from ina.controller.routing.plan import Plan
from ina.controller.routing.policies import POLICIES, policy
from ina.controller.routing.policy import Policy, Situation
from ina.fabric.shapes import leaf_spine
from tests.controller.routing.networks import Drawn, drawn, fat_tree_network, jobs_on, network_of
from tests.controller.routing.oracle import carry
from tests.selection import LONG

OWN = [name for name, it in POLICIES.items() if not it.needs_solver]
"""Those that need NumPy alone."""


EXAMPLES = 2500 if LONG else 25
"""For each of four policies, with two networks an example: the long run has 10^4 and more."""


def _plan(name: str, situation: Situation) -> Plan | None:
    """None: it is refused, in one line."""
    try:
        return policy(name).plan(situation)
    except RoutingError as error:
        lines = str(error).splitlines()
    assert len(lines) == 1
    return None


@pytest.mark.parametrize("name", OWN)
@settings(max_examples=EXAMPLES, deadline=None)
@given(drawn())
def test_every_plan_can_be_carried_out_and_is_no_better_than_its_bound(
    name: str, case: Drawn
) -> None:
    broken = case.network.without(case.cables, case.places)
    for network in (case.network, broken):
        situation = Situation.of(network, case.demands)
        plan = _plan(name, situation)
        if plan is None:
            continue
        assert list(problems(network, case.demands, plan)) == []
        carried = carry(network, case.demands, plan)
        loads = loads_of(network, case.demands, plan)
        for way in carried.cables:
            np.testing.assert_allclose(loads.cables, way, rtol=1e-9)
        np.testing.assert_allclose(loads.places, carried.places, rtol=1e-9)
        found = judge(network, case.demands, plan)
        assert found.step_s >= cut_bound(network, case.demands).seconds * (1 - 1e-9)


@settings(max_examples=EXAMPLES, deadline=None)
@given(drawn())
def test_no_cable_place_or_host_is_exceeded_at_fair_rates(case: Drawn) -> None:
    plan = _plan("ina", Situation.of(case.network, case.demands))
    if plan is None:
        return
    found = judge(case.network, case.demands, plan)
    total = sum(
        np.concatenate(found.by_job[it.name].seconds(case.network)) / found.job_s[it.name]
        for it in case.demands
        if found.job_s[it.name] > 0
    )
    assert np.max(total, initial=0.0) <= 1 + 1e-9
    assert max(found.job_s.values()) <= found.step_s * (1 + 1e-9) * max(
        it.step_bytes for it in case.demands
    ) / min(it.step_bytes for it in case.demands)


@settings(max_examples=EXAMPLES, deadline=None)
@given(drawn())
def test_ina_is_never_worse_than_what_it_is_compared_with(case: Drawn) -> None:
    situation = Situation.of(case.network, case.demands)
    steps = {}
    for name in ("ina", "nearest", "single", "panama"):
        plan = _plan(name, situation)
        if plan is not None:
            steps[name] = judge(case.network, case.demands, plan).step_s
    if steps:
        assert steps["ina"] <= min(steps.values()) * (1 + 1e-9)


@pytest.mark.parametrize("name", OWN)
def test_the_same_situation_has_the_same_plan(name: str) -> None:
    network = fat_tree_network(4)
    demands = jobs_on(network, 3)

    def keys(it: Policy) -> dict[str, list[tuple[object, ...]]]:
        plan = it.plan(Situation.of(network, demands))
        return {job: [s.tree.key for s in had] for job, had in plan.stripes.items()}

    assert keys(policy(name)) == keys(policy(name))


def test_a_policy_that_does_not_exist_is_refused() -> None:
    with pytest.raises(RoutingError, match=r"no policy 'best': have .*'ina'.*'nearest'"):
        policy("best")


def test_the_controllers_file_knows_the_same_policies() -> None:
    assert set(PLACEMENTS) == set(POLICIES)


def test_ina_meets_the_bound_in_fat_trees() -> None:
    for seed in range(3):
        network = fat_tree_network(8, up=0.5)
        demands = jobs_on(network, 10, seed=seed)
        plan = policy("ina").plan(Situation.of(network, demands))
        bound = cut_bound(network, demands)
        assert judge(network, demands, plan).step_s <= 1.10 * bound.seconds


def test_the_slow_uplink_is_left_out() -> None:
    """One of two uplinks of a rack has a tenth of the rate: few stripes, or none, go there."""
    network = network_of(leaf_spine(2, 3, 3))
    rates = network.rates.copy()
    narrow = network.cable_between[network.place("leaf1"), network.place("spine1")]
    rates[narrow] = 0.1
    network = replace(network, rates=rates)
    demands = jobs_on(network, 2)
    steps = {
        name: judge(network, demands, policy(name).plan(Situation.of(network, demands))).step_s
        for name in ("nearest", "ina")
    }
    assert steps["nearest"] >= 1.3 * steps["ina"]
