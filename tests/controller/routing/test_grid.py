"""Policy ``grid``: plans that can be carried out, near the best, never better than its bound."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.controller.errors import RoutingError
from ina.controller.routing.demand import Demand
from ina.controller.routing.grid_lp import GridProgram, Shares
from ina.controller.routing.loads import no_loads
from ina.controller.routing.network import Network
from ina.controller.routing.plan import Plan, Stripe
from ina.controller.routing.policies.exact import Exact
from ina.controller.routing.policies.grid import Grid
from ina.controller.routing.policy import Policy, Situation
from ina.controller.routing.rounding import Draw, deal
from ina.controller.routing.space import Part, space_of, tree_of
from ina.fabric.shapes import fat_tree, leaf_spine
from tests.controller.routing.drawn import (
    BYTES,
    HOST_S,
    RATE,
    any_situation,
    network_of,
    some_jobs,
    step_s,
    three_switches,
    with_others,
)
from tests.selection import LONG, examples

POLICIES: list[Policy] = [Grid(), Exact()]


def at_racks(situation: Situation, *, summed: bool) -> Plan:
    """Every rack's workers are summed there, or nowhere but at the root."""
    network, found = situation.network, {}
    for demand in situation.demands:
        (racks, counts), root = demand.racks(network), demand.root(network)
        pairs = list(zip(racks.tolist(), counts.tolist(), strict=True))
        ways = {rack: situation.ways.way(rack, root) for rack, _ in pairs}
        parts = [Part(rack, n, (rack,) if summed else ways[rack]) for rack, n in pairs]
        up = {rack: way for rack, way in ways.items() if summed and rack != root}
        found[demand.name] = (Stripe(1.0, tree_of(network, demand, parts, up)),)
    return Plan(found)


def test_on_three_switches_it_is_as_good_as_the_best() -> None:
    ratios = []
    for seed in range(18 if LONG else 6):
        situation = three_switches(seed)
        best = step_s(situation, Exact("grid").plan(situation))
        plans = [
            Grid().plan(situation),
            at_racks(situation, summed=True),
            at_racks(situation, summed=False),
        ]
        ratios.append([step_s(situation, it) / best for it in plans])
    grid, racks, none = np.mean(ratios, axis=0)
    assert np.min(ratios) > 1 - 1e-6
    assert grid < 1.01
    assert racks > 1.3
    assert none > 2.5


def test_stripes_come_near_the_program_where_one_tree_a_job_cannot() -> None:
    network = network_of(fat_tree(4), processing=2)
    jobs = some_jobs(network, 3, seed=1, workers=(4, 6), stripes=16)
    situation = Situation.of(network, jobs)
    bound = Grid().bound(situation)
    assert step_s(situation, Grid().plan(situation)) < 1.1 * bound.seconds
    one = Situation.of(network, [replace(it, stripes=1) for it in jobs])
    assert step_s(one, Grid().plan(one)) >= bound.seconds


def test_a_folded_fat_tree() -> None:
    network = network_of(fat_tree(8), processing=3)
    situation = Situation.of(
        network, some_jobs(network, 6, seed=0, workers=(12, 16), stripes=8), seed=3
    )
    bound = Grid().bound(situation)
    assert bound.what == "LP of points, folded"
    assert bound.seconds > 1.02 * HOST_S
    plan = Grid().plan(situation)
    assert step_s(situation, plan) < 1.25 * bound.seconds
    again = Grid().plan(situation)
    assert all(
        [it.tree.key for it in plan.stripes[name]] == [it.tree.key for it in again.stripes[name]]
        for name in plan.stripes
    )


def test_a_fold_of_equal_switches_loses_nothing() -> None:
    network = network_of(leaf_spine(3, 4, 3), processing=2)
    situation = Situation.of(network, some_jobs(network, 3, seed=0, workers=(4, 4), stripes=1))
    space = space_of(situation, small=0)
    assert len(space.small.network) == 5
    whole, folded = (
        GridProgram(it, HOST_S).solver("grid").solve().cost for it in (space, space.small)
    )
    assert folded == pytest.approx(whole, rel=1e-5)
    assert folded > 1.4


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(
    seed=st.integers(1000, 100_000),
    stripes=st.sampled_from([1, 4]),
    formulation=st.sampled_from(["path", "rate"]),
    is_folded=st.booleans(),
    has_others=st.booleans(),
)
def test_any_network(
    seed: int, stripes: int, formulation: str, is_folded: bool, has_others: bool
) -> None:
    situation = any_situation(seed, stripes=stripes)
    policy = Grid(formulation, small=0 if is_folded else 10_000)
    try:
        if has_others:
            situation = with_others(situation)
        plan = policy.plan(situation)
    except RoutingError:
        return
    assert step_s(situation, plan) >= policy.bound(situation).seconds


def test_others_are_kept_clear_of() -> None:
    network = network_of(leaf_spine(2, 3, 4))
    (job,) = some_jobs(network, 1, seed=4, workers=(6, 6), stripes=8)
    spine, others = network.place("spine1"), no_loads(network)
    others.cables[[network.cable_between[leaf, spine] for leaf in range(3)]] = 4 * BYTES
    situation = Situation(network, (job,), others=others)
    plan = Grid().plan(situation)
    assert step_s(situation, plan) == pytest.approx(4 * HOST_S)
    assert all(
        spine not in way
        for stripe in plan.stripes[job.name]
        for way in (*stripe.tree.up.values(), *stripe.tree.ways.values())
    )


def test_a_job_of_more_workers_than_a_switch_has_bits() -> None:
    network = network_of(fat_tree(8))
    situation = Situation.of(network, [Demand("large", tuple(range(128)), BYTES, stripes=2)])
    plan = Grid().plan(situation)
    assert step_s(situation, plan) >= Grid().bound(situation).seconds
    assert max(max(it.tree.children.values()) for it in plan.stripes["large"]) <= 32


def test_what_is_refused() -> None:
    network = network_of(leaf_spine(1, 2, 8))
    (job,) = some_jobs(network, 1, seed=0, workers=(16, 16), stripes=1)
    root = network.names[job.root(network)]

    def refusal(network: Network, job: Demand = job, policy: Grid | None = None) -> str:
        with pytest.raises(RoutingError) as refused:
            (policy or Grid()).plan(Situation.of(network, [job]))
        return str(refused.value)

    few = replace(network, most_children=2)
    assert "16 workers: one level of switches" in refusal(few)
    tight = replace(network, most_children=4)
    assert "no switch has more than 4 children" in refusal(tight)
    full = network.with_slots(np.zeros(len(network), dtype=np.int64))
    assert f"{root} has 0 free slots of 8" in refusal(full, replace(job, slots=8))
    assert "no path of links that are up" in refusal(network.without(cables=[0]))
    deaf = replace(network, sums=np.zeros(len(network), dtype=np.bool_))
    assert f"{root}, which would make its results, does not sum" in refusal(deaf)
    assert "formulation 'flow': want path or rate" in refusal(network, policy=Grid("flow"))


def test_no_jobs_no_trees() -> None:
    situation = Situation.of(network_of(leaf_spine(1, 2, 1)), [])
    assert [it.plan(situation).stripes for it in POLICIES] == [{}, {}]


def test_without_time_for_the_program_prices_alone_have_to_do() -> None:
    network = network_of(fat_tree(4), processing=4)
    situation = Situation.of(network, some_jobs(network, 3, seed=2, workers=(4, 5), stripes=8))
    plan = Grid(limit_s=0.0).plan(situation)
    assert step_s(situation, plan) < 1.5 * Grid().bound(situation).seconds


def test_a_choice_of_ways_finds_what_the_network_would_not() -> None:
    names = ["a", "b", "c"]
    network = Network.of(
        names,
        [("a", "b", RATE / 10), ("a", "c", RATE), ("c", "b", RATE)],
        [("h0", "a", RATE), ("h1", "b", RATE)],
    )
    network = replace(network, sums=np.array([True, True, False]))
    situation = Situation.of(network, [Demand("job", (0, 1), BYTES, stripes=1)])
    assert step_s(situation, Grid("path").plan(situation)) == pytest.approx(HOST_S)
    assert step_s(situation, Grid("rate").plan(situation)) == pytest.approx(10 * HOST_S)


@pytest.mark.parametrize("draw", ["middle", "together", "apart", "alone"])
def test_workers_are_dealt_as_their_shares(draw: Draw) -> None:
    counts = np.array([[2.0, 1.0, 1.0], [0.0, 4.0, 4.0]])
    shares = Shares(np.array([5, 6, 7]), np.array([0, 1]), counts)
    workers, away = np.array([4, 8]), np.array([2, 1, 0])
    dealt = deal(shares, workers, away, 64, draw, np.random.default_rng(0))
    assert (dealt.sum(axis=2) == workers).all()
    tolerance = 0.5 if draw == "alone" else 0.1
    assert dealt.mean(axis=0) == pytest.approx(counts, abs=tolerance)
