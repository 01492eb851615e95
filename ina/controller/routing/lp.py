"""Linear programs, with integers where wanted, solved by HiGHS. Pure.

HiGHS is an optional extra (``ina[plan]``): a controller that runs other policies does without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from ina.controller.errors import RoutingError
from ina.controller.routing.network import Floats, Ints

DEFAULT_LIMIT_S = 60.0

Numbers = npt.ArrayLike
"""One for all, or an array."""


class LpError(RoutingError):
    """A program has no solution, or none was found in time."""


class InfeasibleError(LpError):
    """Nothing satisfies all rows."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Of least cost, or, of a program with integers that ran out of time, the best found."""

    values: Floats
    """(columns,)"""
    cost: float
    bound: float
    """No solution costs less."""
    is_optimal: bool


@dataclass(eq=False)
class Program:
    """Columns and rows, gathered in bulk; cost is made least."""

    _costs: list[Floats] = field(default_factory=list)
    _lower: list[Floats] = field(default_factory=list)
    _upper: list[Floats] = field(default_factory=list)
    _integral: list[npt.NDArray[np.bool_]] = field(default_factory=list)
    _row_lower: list[Floats] = field(default_factory=list)
    _row_upper: list[Floats] = field(default_factory=list)
    _entries: list[tuple[Ints, Ints, Floats]] = field(default_factory=list)
    count: int = 0
    """Of columns."""
    row_count: int = 0

    def columns(
        self,
        count: int,
        *,
        lower: Numbers = 0.0,
        upper: Numbers = inf,
        cost: Numbers = 0.0,
        integral: npt.ArrayLike = False,
    ) -> Ints:
        """Adds some; returns their numbers."""
        for kept, given in ((self._lower, lower), (self._upper, upper), (self._costs, cost)):
            kept.append(_floats(given, count))
        self._integral.append(np.broadcast_to(np.asarray(integral, dtype=np.bool_), (count,)))
        self.count += count
        return np.arange(self.count - count, self.count, dtype=np.int64)

    def rows(
        self,
        count: int,
        entries: tuple[Sequence[int] | Ints, Sequence[int] | Ints, Numbers],
        *,
        lower: Numbers = -inf,
        upper: Numbers = inf,
    ) -> None:
        """Adds some. ``entries``: by number of row among these, of column, and value; values of one
        place add up."""
        row, column, value = entries
        rows = np.asarray(row, dtype=np.int64)
        self._row_lower.append(_floats(lower, count))
        self._row_upper.append(_floats(upper, count))
        self._entries.append(
            (rows + self.row_count, np.asarray(column, dtype=np.int64), _floats(value, len(rows)))
        )
        self.row_count += count

    def matrix(self) -> tuple[Ints, Ints, Floats]:
        """Starts of rows, numbers of columns, values."""
        row, column, value = (
            np.concatenate([np.zeros(0), *(it[i] for it in self._entries)]) for i in range(3)
        )
        places, inverse = np.unique(
            row.astype(np.int64) * max(self.count, 1) + column.astype(np.int64), return_inverse=True
        )
        values = np.bincount(inverse, weights=value, minlength=len(places)).astype(np.float64)
        rows, columns = np.divmod(places, max(self.count, 1))
        return np.searchsorted(rows, np.arange(self.row_count + 1)), columns, values


class Solver:
    """Of one program; a second solution, after a change, starts from the first."""

    def __init__(
        self,
        program: Program,
        *,
        wanted_by: str,
        limit_s: float = DEFAULT_LIMIT_S,
        infeasible: str = "no solution satisfies all limits",
    ) -> None:
        """``wanted_by``: the policy; ``infeasible``: what it says where there is no solution.
        Raises :class:`RoutingError`: HiGHS is missing."""
        self._highspy = highspy = _load(wanted_by)
        self._name, self._limit_s, self._infeasible = wanted_by, limit_s, infeasible
        self._is_integral = any(it.any() for it in program._integral)
        self._highs = highs = _quiet(highspy)
        for option, value in (
            ("threads", 1),
            ("random_seed", 0),
            ("time_limit", limit_s),
            ("mip_rel_gap", 1e-6),
        ):
            highs.setOptionValue(option, value)
        highs.passModel(_model(highspy, program, self._is_integral))

    def set_costs(self, costs: Floats) -> None:
        """Of all columns."""
        numbers = np.arange(len(costs), dtype=np.int32)
        self._highs.changeColsCost(len(costs), numbers, costs)

    def limit_column(self, number: int, lower: float, upper: float) -> None:
        """Another range of values."""
        self._highs.changeColBounds(number, lower, upper)

    def solve(self) -> Solution:
        """Raises :class:`InfeasibleError`; :class:`LpError`: it has none, or none in time."""
        highs, status = self._highs, self._highspy.HighsModelStatus
        highs.run()
        ended, info = highs.getModelStatus(), highs.getInfo()
        if ended in (status.kInfeasible, status.kUnboundedOrInfeasible):
            raise InfeasibleError(f"policy {self._name!r}: {self._infeasible}")
        is_optimal = ended in (status.kOptimal, status.kModelEmpty)
        found = info.primal_solution_status == 2  # feasible
        if not is_optimal and not (self._is_integral and found):
            if ended == status.kTimeLimit:
                raise LpError(f"policy {self._name!r}: no solution within {self._limit_s:g} s")
            raise LpError(
                f"policy {self._name!r}: the solver ended with {highs.modelStatusToString(ended)}"
            )
        cost = float(info.objective_function_value)
        return Solution(
            np.array(highs.getSolution().col_value, dtype=np.float64),
            cost,
            float(info.mip_dual_bound) if self._is_integral else cost,
            is_optimal,
        )


def _model(highspy: ModuleType, program: Program, is_integral: bool) -> object:
    starts, columns, values = program.matrix()
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = program.count, program.row_count
    for name, parts in (
        ("col_cost_", program._costs),
        ("col_lower_", program._lower),
        ("col_upper_", program._upper),
        ("row_lower_", program._row_lower),
        ("row_upper_", program._row_upper),
    ):
        setattr(model, name, np.concatenate([np.zeros(0), *parts]))
    matrix = model.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kRowwise
    matrix.num_col_, matrix.num_row_ = program.count, program.row_count
    matrix.start_, matrix.index_, matrix.value_ = starts, columns, values
    if is_integral:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[bool(it)] for it in np.concatenate(program._integral)]
    return model


def _load(wanted_by: str) -> ModuleType:
    try:
        import highspy
    except ImportError as error:
        raise RoutingError(f"policy {wanted_by!r} needs highspy: pip install highspy") from error
    found: ModuleType = highspy
    return found


def _quiet(highspy: ModuleType) -> Any:
    """An instance that says nothing on standard output: 1.16 does from where it enables callbacks,
    before an option can be set."""

    class Quiet(highspy.Highs):  # type: ignore[misc, name-defined]
        def enableCallbacks(self) -> None:  # noqa: N802
            self.setOptionValue("output_flag", False)

    return Quiet()


def _floats(given: Numbers, count: int) -> Floats:
    return np.broadcast_to(np.asarray(given, dtype=np.float64), (count,))
