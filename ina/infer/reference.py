"""A plan in one process, in NumPy: what answers must be equal to, bit by bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ina.infer.errors import RequestError
from ina.infer.plan import InferencePlan, StageSpec
from ina.infer.shapes import bias_of, graph_of, table_of

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]


def checked_samples(plan: InferencePlan, samples: NDArray[np.generic]) -> Ints:
    """As int32 of shape (samples, width): floats by the plan's scale, bounded by its range.

    Raises RequestError: another shape or type, or integers outside the range.
    """
    given = plan.spec.input
    if samples.ndim == 1 and given.width == 1:
        samples = samples[:, np.newaxis]
    if samples.ndim != 2 or samples.shape[1] != given.width:
        raise RequestError(f"samples of shape {samples.shape}: want (samples, {given.width})")
    if samples.dtype.kind == "f":
        if not np.isfinite(samples.astype(np.float64)).all():
            raise RequestError("samples: not all are finite")
        scaled = np.rint(samples.astype(np.float64) * given.scale)
        return np.clip(scaled, given.low, given.high).astype(np.int32)
    if samples.dtype.kind not in "iu":
        raise RequestError(f"samples of {samples.dtype}: want integers or floats")
    if samples.size and (samples.min() < given.low or samples.max() > given.high):
        raise RequestError(
            f"samples from {samples.min()} to {samples.max()}: the plan takes {given.low} to"
            f" {given.high}"
        )
    return np.ascontiguousarray(samples, np.int32)


def answers_of(plan: InferencePlan, samples: NDArray[np.generic]) -> Ints:
    """Of shape (samples, rows, width). Raises RequestError."""
    values: Longs = checked_samples(plan, samples).astype(np.int64)[:, np.newaxis, :]
    made: dict[str, Longs] = {}
    for stage in plan.spec.stage:
        values = made[stage.name] = run_stage(plan, stage, values, made)
    return values.astype(np.int32)


def run_stage(
    plan: InferencePlan, stage: StageSpec, values: Longs, made: dict[str, Longs]
) -> Longs:
    """Values of shape (samples, rows, width); `made`: those of earlier stages."""
    match stage.kernel:
        case "linear":
            weights = plan.array(stage, "weights").astype(np.int64)
            sums: Longs = values @ weights.T + bias_of(plan, stage, len(weights))
            low, high = stage.clip or (-(2**31), 2**31 - 1)
            return np.asarray(np.clip(sums >> stage.shift, low, high), np.int64)
        case "relu":
            return np.maximum(values, 0).astype(np.int64)
        case "add":
            return values + made[stage.of]
        case "embed":
            return _rows(table_of(plan, stage), values[..., 0])
        case "neighbours":
            table = table_of(plan, stage)
            vertices = values[..., 0]
            summed: Longs = _rows(table, neighbours_of(plan, stage, vertices)).sum(axis=2)
            if not stage.with_self:
                return summed
            return np.concatenate([_rows(table, vertices), summed], axis=2)
        case "frontier":
            vertices = values[..., 0]
            others = neighbours_of(plan, stage, vertices)
            both = np.concatenate([vertices[..., np.newaxis], others], axis=2)
            return both.reshape(len(values), both.shape[1] * both.shape[2], 1)
        case "fold":
            first, others = values[:, 0], values[:, 1:].sum(axis=1)
            return np.concatenate([first, others], axis=1)[:, np.newaxis, :]
        case "argmax":
            best: Longs = values.argmax(axis=2)
            return best[..., np.newaxis]


def _rows(table: Longs, numbers: Longs) -> Longs:
    """Zeros for -1."""
    found: Longs = table[np.maximum(numbers, 0)]
    found[numbers < 0] = 0
    return found


def neighbours_of(plan: InferencePlan, stage: StageSpec, vertices: Longs) -> Longs:
    """Of each at most `fanout`, in a new last dimension; -1 where there are fewer.

    Where there are more, they are drawn by the seed and the vertex: as native/infer/kernels.cpp.
    """
    first, to = graph_of(plan, stage)
    known = np.maximum(vertices, 0)
    degree = (first[known + 1] - first[known])[..., np.newaxis]
    index = np.arange(stage.fanout)
    start = (_mixed(np.uint64(stage.seed) ^ known.astype(np.uint64))[..., np.newaxis]) % np.maximum(
        degree, 1
    ).astype(np.uint64)
    stride = degree // stage.fanout
    drawn = (start.astype(np.int64) + index * stride) % np.maximum(degree, 1)
    place = np.where(degree > stage.fanout, drawn, np.minimum(index, np.maximum(degree - 1, 0)))
    has = (index < degree) & (vertices[..., np.newaxis] >= 0)
    at = np.where(has, first[known][..., np.newaxis] + place, 0)
    if to.size == 0:
        return np.full(at.shape, -1, np.int64)
    return np.where(has, to[at], -1)


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser (Steele, Lea and Flood)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)), np.uint64)
