"""What each stage of a plan makes: rows, columns and the least and largest value of each.

Kernels add int32 in any order. So that no partial sum leaves int32, whatever is asked within the
plan's input range, the sum of the absolute values of all summands must stay below 2^31: that is
proven here, for each column, or the plan is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ina.infer.errors import PlanError
from ina.infer.plan import InferencePlan, StageSpec

Longs = NDArray[np.int64]
LIMIT = 2**31
_MOST_SUMMANDS = 1 << 20  # of one sum: so their products fit int64 on the way to being refused


@dataclass(frozen=True)
class Shape:
    """Of a sample, behind a stage."""

    rows: int
    low: Longs  # of each column, in any row
    high: Longs
    largest: int = 0
    """Absolute value that a sum on the way to it may reach; below 2^31."""

    @property
    def width(self) -> int:
        """Columns."""
        return int(self.low.size)


def shapes_of(plan: InferencePlan) -> list[Shape]:
    """Of the input, and behind each stage. Raises PlanError: one does not fit, or may overflow."""
    given = plan.spec.input
    width = given.width
    shapes = [Shape(1, np.full(width, given.low, np.int64), np.full(width, given.high, np.int64))]
    names: dict[str, Shape] = {}
    for stage in plan.spec.stage:
        shape = _KERNELS[stage.kernel](plan, stage, shapes[-1], names)
        if shape.largest >= LIMIT:
            raise PlanError(
                f"stage {stage.name!r}: a sum may reach {shape.largest}, and int32 ends at"
                f" {LIMIT - 1}: take smaller weights, or a larger shift or a clip before it"
            )
        shapes.append(shape)
        names[stage.name] = shape
    return shapes


def _linear(plan: InferencePlan, stage: StageSpec, before: Shape, _: dict[str, Shape]) -> Shape:
    weights = plan.array(stage, "weights").astype(np.int64)
    if weights.ndim != 2 or weights.shape[1] != before.width or not weights.shape[0]:
        raise PlanError(
            f"stage {stage.name!r}: weights of shape {weights.shape}: want (out, {before.width})"
        )
    bias = bias_of(plan, stage, weights.shape[0])
    if before.width > _MOST_SUMMANDS:
        raise PlanError(f"stage {stage.name!r}: {before.width} columns: at most {_MOST_SUMMANDS}")
    extreme = np.maximum(np.abs(before.low), np.abs(before.high))
    largest = _largest_product(np.abs(weights), extreme) + int(np.abs(bias).max(initial=0))
    if largest >= LIMIT:
        return Shape(before.rows, bias, bias, largest)
    up, down = np.maximum(weights, 0), np.minimum(weights, 0)
    low: Longs = np.asarray(up @ before.low + down @ before.high + bias, np.int64) >> stage.shift
    high: Longs = np.asarray(up @ before.high + down @ before.low + bias, np.int64) >> stage.shift
    least, most = stage.clip or (-LIMIT, LIMIT - 1)
    return Shape(before.rows, np.clip(low, least, most), np.clip(high, least, most), largest)


def _largest_product(weights: Longs, extreme: Longs) -> int:
    """Of sums of products without signs; Python's integers where int64 might not do."""
    at_most = int(weights.max()) * int(extreme.max()) * int(extreme.size)
    if at_most < LIMIT:
        return at_most
    if at_most < 2**62:
        return int((weights @ extreme).max())
    return int((weights.astype(object) @ extreme.astype(object)).max())


def bias_of(plan: InferencePlan, stage: StageSpec, width: int) -> Longs:
    """Zeros where it names none. Raises PlanError."""
    if not stage.bias:
        return np.zeros(width, np.int64)
    bias = plan.array(stage, "bias").astype(np.int64)
    if bias.shape != (width,):
        raise PlanError(f"stage {stage.name!r}: bias of shape {bias.shape}: want ({width},)")
    return bias


def _relu(plan: InferencePlan, stage: StageSpec, before: Shape, names: dict[str, Shape]) -> Shape:
    return Shape(before.rows, np.maximum(before.low, 0), np.maximum(before.high, 0))


def _add(plan: InferencePlan, stage: StageSpec, before: Shape, names: dict[str, Shape]) -> Shape:
    if stage.of not in names:
        known = ", ".join(names) or "nothing"
        raise PlanError(f"stage {stage.name!r}: of {stage.of!r}: stages before it are {known}")
    other = names[stage.of]
    if (other.rows, other.width) != (before.rows, before.width):
        raise PlanError(
            f"stage {stage.name!r}: adds {other.rows} x {other.width} values to {before.rows} x"
            f" {before.width}"
        )
    low, high = before.low + other.low, before.high + other.high
    return Shape(before.rows, low, high, int(max(np.abs(low).max(), np.abs(high).max())))


def table_of(plan: InferencePlan, stage: StageSpec) -> Longs:
    """Rows of numbers. Raises PlanError."""
    table = plan.array(stage, "table").astype(np.int64)
    if table.ndim != 2 or not table.size:
        raise PlanError(f"stage {stage.name!r}: table of shape {table.shape}: want (rows, width)")
    return table


def _check_numbers(stage: StageSpec, before: Shape, rows: int) -> None:
    if before.width != 1:
        raise PlanError(f"stage {stage.name!r}: takes one number a row, not {before.width}")
    low, high = int(before.low[0]), int(before.high[0])
    if low < -1 or high >= rows:
        raise PlanError(
            f"stage {stage.name!r}: gets numbers {low} to {high}: want -1 (none) to {rows - 1}"
        )


def _embed(plan: InferencePlan, stage: StageSpec, before: Shape, _: dict[str, Shape]) -> Shape:
    table = table_of(plan, stage)
    _check_numbers(stage, before, len(table))
    low, high = np.minimum(table.min(axis=0), 0), np.maximum(table.max(axis=0), 0)
    return Shape(before.rows, low, high)


def graph_of(plan: InferencePlan, stage: StageSpec) -> tuple[Longs, Longs]:
    """First edge of each vertex, and where the last one's end; and vertices. Raises PlanError."""
    first = plan.named(stage, "graph", f"{stage.graph}.indptr").astype(np.int64)
    to = plan.named(stage, "graph", f"{stage.graph}.indices").astype(np.int64)
    vertices = first.size - 1
    if first.ndim != 1 or to.ndim != 1 or vertices < 1:
        raise PlanError(f"stage {stage.name!r}: graph {stage.graph!r}: want two lists")
    if first[0] != 0 or first[-1] != to.size or (np.diff(first) < 0).any():
        raise PlanError(f"stage {stage.name!r}: {stage.graph}.indptr does not cut the edges")
    if to.size and (to.min() < 0 or to.max() >= vertices):
        raise PlanError(f"stage {stage.name!r}: {stage.graph}.indices: want 0 to {vertices - 1}")
    return first, to


def _neighbours(plan: InferencePlan, stage: StageSpec, before: Shape, _: dict[str, Shape]) -> Shape:
    table = table_of(plan, stage)
    vertices = graph_of(plan, stage)[0].size - 1
    if vertices != len(table):
        raise PlanError(
            f"stage {stage.name!r}: {vertices} vertices, and a table of {len(table)} rows"
        )
    _check_numbers(stage, before, vertices)
    low, high = np.minimum(table.min(axis=0), 0), np.maximum(table.max(axis=0), 0)
    summed = stage.fanout * low, stage.fanout * high
    largest = int(max(-summed[0].min(), summed[1].max()))
    if stage.with_self:
        summed = np.concatenate([low, summed[0]]), np.concatenate([high, summed[1]])
    return Shape(before.rows, *summed, largest)


def _frontier(plan: InferencePlan, stage: StageSpec, before: Shape, _: dict[str, Shape]) -> Shape:
    vertices = graph_of(plan, stage)[0].size - 1
    _check_numbers(stage, before, vertices)
    numbers = np.array([-1], np.int64), np.array([vertices - 1], np.int64)
    return Shape(before.rows * (1 + stage.fanout), *numbers)


def _fold(plan: InferencePlan, stage: StageSpec, before: Shape, names: dict[str, Shape]) -> Shape:
    others = before.rows - 1
    if not others:
        raise PlanError(f"stage {stage.name!r}: folds rows, and a sample has one")
    low = np.concatenate([before.low, others * before.low])
    high = np.concatenate([before.high, others * before.high])
    extreme = np.maximum(np.abs(before.low), np.abs(before.high))
    return Shape(1, low, high, int(others * extreme.max()))


def _argmax(plan: InferencePlan, stage: StageSpec, before: Shape, names: dict[str, Shape]) -> Shape:
    return Shape(before.rows, np.array([0], np.int64), np.array([before.width - 1], np.int64))


_KERNELS = {
    "linear": _linear,
    "relu": _relu,
    "add": _add,
    "embed": _embed,
    "neighbours": _neighbours,
    "frontier": _frontier,
    "fold": _fold,
    "argmax": _argmax,
}
