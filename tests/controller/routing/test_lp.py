"""The wrapper of HiGHS: bulk rows, integers, a second solution, what it refuses."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from ina.controller.errors import RoutingError
from ina.controller.routing.lp import InfeasibleError, LpError, Program, Solver
from ina.controller.routing.lp_bounds import grid_bound
from ina.controller.routing.policies.exact import Exact
from ina.controller.routing.policies.grid import Grid
from tests.controller.routing.drawn import three_switches


def knapsack(*, integral: bool) -> Program:
    """The most of x + 2y where x + 1.5y is at most 5.2, x at most 4, y at most 3."""
    program = Program()
    program.columns(2, upper=[4.0, 3.0], cost=[-1.0, -2.0], integral=integral)
    program.rows(1, ([0, 0, 0], [0, 1, 1], [1.0, 1.0, 0.5]), upper=5.2)
    return program


def test_entries_of_one_place_add_up() -> None:
    found = Solver(knapsack(integral=False), wanted_by="grid").solve()
    assert found.values == pytest.approx([0.7, 3.0])
    assert found.cost == found.bound == pytest.approx(-6.7)
    assert found.is_optimal


def test_integers_and_their_bound() -> None:
    found = Solver(knapsack(integral=True), wanted_by="exact").solve()
    assert found.values == pytest.approx([0.0, 3.0])
    assert found.cost == pytest.approx(-6.0)
    assert found.bound == pytest.approx(-6.0, rel=1e-5)


def test_rows_may_come_in_several_calls_and_bound_both_ways() -> None:
    program = Program()
    first = program.columns(3, cost=1.0)
    more = program.columns(1, cost=10.0)
    program.rows(2, ([0, 1], [first[0], first[1]], 1.0), lower=[1.0, 2.0])
    program.rows(1, ([0, 0], [first[2], more[0]], [1.0, 1.0]), lower=4.0, upper=5.0)
    found = Solver(program, wanted_by="grid").solve()
    assert found.values == pytest.approx([1.0, 2.0, 4.0, 0.0])


def test_a_second_solution_after_a_change() -> None:
    solver = Solver(knapsack(integral=False), wanted_by="grid")
    solver.solve()
    solver.limit_column(1, 0.0, 1.0)
    assert solver.solve().values == pytest.approx([3.7, 1.0])
    solver.set_costs(np.array([1.0, 1.0]))
    assert solver.solve().values == pytest.approx([0.0, 0.0])


def test_what_has_no_solution_says_why() -> None:
    program = Program()
    program.columns(1, upper=1.0)
    program.rows(1, ([0], [0], 1.0), lower=2.0)
    with pytest.raises(InfeasibleError, match="policy 'exact': too much"):
        Solver(program, wanted_by="exact", infeasible="too much").solve()


def test_out_of_time() -> None:
    with pytest.raises(LpError, match="policy 'grid': no solution within 0 s"):
        grid_bound(three_switches(0), limit_s=0.0)


def test_nothing_is_said_on_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    Solver(knapsack(integral=True), wanted_by="exact").solve()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("policy", [Grid(), Exact("trees"), Exact("grid")])
def test_without_highspy(policy: Grid | Exact, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    wanted = rf"^policy '{policy.name}' needs highspy: pip install highspy$"
    with pytest.raises(RoutingError, match=wanted):
        policy.plan(three_switches(0))
