"""Jobs come and go, links and switches fail: what the planner keeps, moves and refuses."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.controller.errors import RoutingError
from ina.controller.routing.demand import Demand
from ina.controller.routing.judge import judge, problems
from ina.controller.routing.loads import loads_of
from ina.controller.routing.network import Network
from ina.controller.routing.plan import Plan
from ina.controller.routing.planner import Planner
from ina.controller.routing.policies.exact import Exact
from ina.controller.routing.policy import Situation
from ina.fabric.shapes import leaf_spine
from tests.controller.routing.networks import Drawn, drawn, fat_tree_network, jobs_on, network_of
from tests.selection import LONG


def _checked(planner: Planner) -> Plan:
    """Its plan, which can be carried out and loads what it says."""
    plan = planner.plan()
    assert list(problems(planner.network, planner.demands, plan)) == []
    cable_s, place_s, _ = loads_of(planner.network, planner.demands, plan).seconds(planner.network)
    longest = max(cable_s.max(initial=0.0), place_s.max(initial=0.0))
    assert planner.step_s == pytest.approx(longest, abs=1e-12)
    return plan


@settings(max_examples=1000 if LONG else 25, deadline=None)
@given(drawn(), st.data())
def test_whatever_happens_every_plan_can_be_carried_out(case: Drawn, data: st.DataObject) -> None:
    planner = Planner(case.network)
    for demand in case.demands:
        before = planner.plan()
        try:
            planner.arrive([demand])
        except RoutingError:
            assert demand.name not in planner.plan().stripes
        assert _checked(planner).moved(before) == 0
    network = case.network.without(case.cables, case.places)
    had = planner.plan()
    hit = planner.change(network)
    now = _checked(planner)
    for name in set(now.stripes) - set(hit):  # who was not hit stays as it was
        assert [it.tree.key for it in now.stripes[name]] == [
            it.tree.key for it in had.stripes[name]
        ]
    moves = data.draw(st.integers(0, 3))
    before_s = planner.step_s
    moved = planner.polish(moves)
    assert moved <= moves
    assert _checked(planner).moved(now) <= moved
    assert planner.step_s <= before_s * (1 + 1e-9)
    planner.change(case.network)
    _checked(planner)
    planner.polish()
    for name in list(planner.plan().stripes):
        planner.depart(name)
    assert planner.step_s == pytest.approx(0.0, abs=1e-9)


def _link(network: Network, one: str, other: str) -> int:
    return network.cable_between[network.place(one), network.place(other)]


def test_a_failed_spine_is_left_and_used_again_once_it_is_back() -> None:
    network = network_of(leaf_spine(2, 3, 3), up=0.5)
    planner = Planner(network)
    planner.arrive([Demand("train", tuple(range(9)))])
    spines = {network.place("spine1"), network.place("spine2")}
    assert {it.tree.root for it in planner.stripes("train")} == spines
    assert [it.share for it in planner.stripes("train")] == [0.5, 0.5]

    assert planner.change(network.without(places=[network.place("spine1")])) == ["train"]
    (only,) = planner.stripes("train")
    assert only.tree.root == network.place("spine2")

    assert planner.change(network) == []
    assert planner.polish(moves=2) == 2
    assert sorted(it.share for it in _checked(planner).stripes["train"]) == [0.25, 0.75]
    assert planner.polish() == 2
    assert [it.share for it in planner.stripes("train")] == [0.5, 0.5]


def test_a_job_that_is_cut_off_is_lost_and_the_others_stay() -> None:
    network = network_of(leaf_spine(1, 3, 2))
    planner = Planner(network)
    planner.arrive([Demand("near", (0, 1)), Demand("far", (0, 2)), Demand("other", (2, 4))])
    cable = _link(network, "leaf1", "spine1")
    assert planner.change(network.without(cables=[cable])) == []
    assert planner.lost == ("far",)
    assert {it.name for it in planner.demands} == {"near", "other"}
    _checked(planner)


def test_jobs_that_cannot_all_come_leave_nothing_behind() -> None:
    network = network_of(leaf_spine(2, 2, 2)).with_slots(np.array([64, 64, 64, 64]))
    planner = Planner(network)
    with pytest.raises(RoutingError, match="free slots"):
        planner.arrive([Demand("fits", (0, 2), slots=64), Demand("not", (1, 3), slots=224)])
    assert planner.demands == ()
    assert planner.step_s == 0.0
    planner.arrive([Demand("fits", (0, 2), slots=64)])
    _checked(planner)


def test_lanes_that_find_no_room_at_a_top_are_summed_farther_up() -> None:
    """Each leaf has room for half of the job; the rest of its workers' lanes go to the spine."""
    network = network_of(leaf_spine(1, 2, 2)).with_slots(np.array([32, 32, 64]))
    planner = Planner(network)
    planner.arrive([Demand("train", (0, 1, 2, 3), slots=64, stripes=4)])
    spine = network.place("spine1")
    firsts = {frozenset(it.tree.first.tolist()) for it in _checked(planner).stripes["train"]}
    assert frozenset({spine}) in firsts
    assert frozenset({0, 1}) in firsts


def test_slots_of_switches_are_shared_out() -> None:
    """Each spine has room for one job: two jobs are on different ones, though one would do."""
    network = network_of(leaf_spine(2, 2, 2)).with_slots(np.array([64, 64, 32, 32]))
    planner = Planner(network)
    planner.arrive([Demand(name, (0, 2), slots=32, stripes=1) for name in ("one", "two")])
    roots = {it.tree.root for name in ("one", "two") for it in _checked(planner).stripes[name]}
    assert roots == {network.place("spine1"), network.place("spine2")}


def test_running_jobs_trees_are_taken_as_they_are() -> None:
    network = fat_tree_network(4)
    demands = jobs_on(network, 3)
    first = Planner(network)
    first.arrive(demands)
    second = Planner(network)
    for demand in demands[:2]:
        second.keep(demand, first.stripes(demand.name))
    second.arrive(demands[2:])
    had = Plan({demand.name: first.stripes(demand.name) for demand in demands[:2]})
    assert _checked(second).moved(had) == 0
    second.polish()
    _checked(second)


def test_more_of_what_others_load_moves_trees_away() -> None:
    network = network_of(leaf_spine(2, 2, 2))
    planner = Planner(network)
    planner.arrive([Demand("train", (0, 2))])
    others = loads_of(network, (), Plan())
    others.cables[_link(network, "leaf1", "spine1")] = 10.0
    assert planner.change(network, others) == []
    planner.polish(moves=8)
    assert {it.tree.root for it in planner.stripes("train")} == {network.place("spine2")}


def test_others_that_stay_on_what_is_down_are_nothing_to_move_for() -> None:
    """Of a mode whose jobs keep their trees, say. Prices would be no numbers."""
    network = network_of(leaf_spine(2, 2, 2))
    cut = _link(network, "leaf1", "spine1")
    others = loads_of(network, (), Plan())
    others.cables[cut] = 10.0
    planner = Planner(network, others=others)
    planner.arrive([Demand("train", (0, 2))])
    planner.change(network.without([cut], []), others)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert planner.polish(moves=8) == 0
    assert {it.tree.root for it in planner.stripes("train")} == {network.place("spine2")}
    planner.depart("train")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert planner.polish(moves=8) == 0


def test_a_large_fat_tree_stays_near_the_bound_while_jobs_go_and_links_fail() -> None:
    network = fat_tree_network(16)
    demands = jobs_on(network, 50)
    planner = Planner(network)
    planner.arrive(demands[:-2])
    assert planner.step_s <= 1.10 * planner.bound().seconds
    rng = np.random.default_rng(1)
    for happens in range(6):
        if happens == 1:
            planner.arrive(demands[-2:])
        elif happens == 2:
            planner.depart(demands[0].name)
        else:
            network = network.without(cables=[int(rng.integers(len(network.rates)))])
            planner.change(network)
        assert planner.step_s <= 1.15 * planner.bound().seconds
        planner.polish()
    judge(network, planner.demands, _checked(planner))


def test_a_slower_cable_takes_longer_at_once() -> None:
    network = network_of(leaf_spine(1, 2, 2))
    planner = Planner(network)
    planner.arrive([Demand("train", (0, 2))])
    rates = network.rates / 4
    planner.change(replace(network, rates=rates))
    assert planner.step_s == pytest.approx(4.0)


@pytest.mark.parametrize("processing", [np.inf, 4.0, 2.0])
@pytest.mark.parametrize("seed", range(3 if LONG else 1))
def test_one_stripe_a_job_is_as_good_as_the_integer_program(seed: int, processing: float) -> None:
    network = fat_tree_network(4, up=0.5)
    network = replace(network, processing=np.full(len(network), processing))
    situation = Situation.of(network, jobs_on(network, 4, seed=seed, stripes=1))
    planner = Planner(network)
    planner.arrive(situation.demands)
    solved = Exact().solve(situation)
    assert solved.is_optimal
    best = judge(network, situation.demands, solved.plan).step_s
    assert judge(network, planner.demands, _checked(planner)).step_s <= best * (1 + 1e-6)
