"""Routing policies compared: the papers' settings, fluids, the virtual network beside the model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ina.cli.sim.saved_rows import read_routing, save_routing
from ina.controller.routing.demand import Demand
from ina.controller.routing.judge import judge
from ina.controller.routing.policies import policy
from ina.controller.routing.policy import Situation
from ina.errors import InvalidInputError
from ina.fabric.shapes import leaf_spine
from ina.sim.errors import ScenarioError
from ina.sim.routing import shipped
from ina.sim.routing.compare import FAMILIES, compare, named
from ina.sim.routing.fluid import step_seconds
from ina.sim.routing.outcome import refused, run_one
from ina.sim.routing.settings import unit_network
from tests.worlds.processes.command import ina


def _outcomes(family: str, *names: str) -> dict[str, list[float]]:
    """By policy: steps over all quick cases, which no bound is above."""
    found: dict[str, list[float]] = {name: [] for name in names}
    for case in FAMILIES[family].cases(True):
        for name in names:
            outcome = run_one(family, case, named(name, case))
            assert not outcome.refused
            assert outcome.over >= 1 - 1e-9
            found[name].append(outcome.step)
    return found


@pytest.mark.parametrize("family", ["grid", "goat", "panama", "fat-tree"])
def test_ina_is_as_good_as_any_policy_in_the_papers_settings(family: str) -> None:
    names = [it for it in FAMILIES[family].policies if it not in ("grid", "exact", "atp")]
    steps = _outcomes(family, *names)
    for name in names:
        assert np.mean(steps["ina"]) <= np.mean(steps[name]) * (1 + 1e-9)


def test_where_few_places_sum_ina_goes_out_of_its_way_to_them() -> None:
    """As GRID does with its linear program; by shortest ways alone it would take three times."""
    case = next(FAMILIES["goat"].cases(True))
    own, grid = (run_one("goat", case, named(name, case)).step for name in ("ina", "grid"))
    assert own <= 1.1 * grid


def test_late_workers_cost_atp_and_not_goat() -> None:
    """GOAT's point: a switch that keeps a sub-model's memory sums late gradients, too."""
    from dataclasses import replace

    case = next(FAMILIES["goat"].cases(True))
    on_time = replace(case, late={})
    free = replace(case, demands=tuple(replace(it, slots=0) for it in case.demands))
    atp = run_one("goat", free, named("atp", free)).step
    atp_on_time = run_one("goat", replace(free, late={}), named("atp", on_time)).step
    assert run_one("goat", case, named("goat", case)).step == pytest.approx(
        run_one("goat", on_time, named("goat", on_time)).step
    )
    assert run_one("goat", case, named("goat", case)).step < atp
    assert run_one("goat", case, named("none", case)).step > atp
    assert atp_on_time > 0


def test_fluids_that_only_send_take_what_the_judge_says() -> None:
    network = unit_network(leaf_spine(2, 3, 3), up=0.5)
    demands = [Demand("one", (0, 3, 6)), Demand("two", (1, 4))]
    plan = policy("nearest").plan(Situation.of(network, demands))
    found = judge(network, demands, plan)
    assert step_seconds(found, 5) == pytest.approx(dict(found.job_s))


def test_a_fluid_alone_computes_and_then_sends() -> None:
    network = unit_network(leaf_spine(1, 2, 2))
    demands = [Demand("alone", (0, 2), step_bytes=3.0, compute_s=2.0)]
    plan = policy("nearest").plan(Situation.of(network, demands))
    assert step_seconds(judge(network, demands, plan), 4) == pytest.approx({"alone": 5.0})


def test_two_fluids_that_meet_on_a_link_share_it() -> None:
    """Each alone takes 1 + 1; they begin to send at most 1 apart, and then take turns or share."""
    network = unit_network(leaf_spine(1, 2, 2))
    demands = [Demand(name, hosts, compute_s=1.0) for name, hosts in
               (("one", (0, 2)), ("two", (1, 3)))]  # fmt: skip
    plan = policy("nearest").plan(Situation.of(network, demands))
    took = step_seconds(judge(network, demands, plan), 20)
    assert all(2.0 - 1e-9 <= it <= 3.0 + 1e-9 for it in took.values())
    assert sum(took.values()) > 4.0 + 1e-3


@pytest.mark.parametrize("placement", ["nearest", "ina"])
def test_the_model_says_what_the_virtual_network_takes(placement: str) -> None:
    run = next(shipped.runs(True))
    found = shipped.measure(run, placement)
    assert found.modelled == pytest.approx({"nearest": 2.0, "ina": 1.0}[placement])
    assert found.step == pytest.approx(found.modelled, rel=0.05)


def test_names_that_there_are_not() -> None:
    with pytest.raises(ScenarioError, match="scenario 'ring': there are grid, goat"):
        compare(["ring"])
    with pytest.raises(ScenarioError, match="policy 'best': there are ina, nearest"):
        compare([], ["best"])


def test_one_command_prints_saves_and_draws(tmp_path: Path) -> None:
    saved, drawn = tmp_path / "rows", tmp_path / "plots"
    done = ina(
        *("sim", "compare", "routing", "--quick", "--scenarios", "panama", "--json"),
        *("--policies", "ecmp,ina", "--processes", "1"),
        *("--save", str(saved), "--plots", str(drawn)),
    )
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert [it["policy"] for it in found] == ["ecmp", "ina"]
    assert found[0]["step"] > found[1]["step"] >= found[1]["bound"]
    rows = read_routing(saved, "panama")
    assert [(it.case, it.policy, it.limit) for it in rows] == [
        (it["case"], it["policy"], it["limit"]) for it in found
    ]
    assert [it.over for it in rows] == pytest.approx([it["step"] / it["bound"] for it in found])
    assert (drawn / "panama.svg").stat().st_size > 1000


def test_rows_that_were_not_measured_again_stay(tmp_path: Path) -> None:
    old = [refused("grid", "one", policy, 1.0, "no way") for policy in ("atp", "ina")]
    save_routing(tmp_path, old)
    save_routing(tmp_path, [replace(old[1], step=2.0, refused="")])
    found = read_routing(tmp_path, "grid")
    assert [(it.policy, it.refused) for it in found] == [("atp", "no way"), ("ina", "")]
    assert found[1].over == 2.0
    (tmp_path / "grid.csv").write_text("case,policy\none,ina\n")
    with pytest.raises(InvalidInputError, match=r"grid\.csv: no column bound, job_step"):
        read_routing(tmp_path, "grid")


def test_a_scenario_that_does_not_exist_is_one_line() -> None:
    done = ina("sim", "compare", "routing", "--scenarios", "ring")
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "there are grid, goat" in done.err
