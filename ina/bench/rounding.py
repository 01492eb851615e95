"""How far off sums are by how floats travel: the documented numerics on drawn gradients.

Relative squared error, |result - exact|^2 / |exact|^2. Values are normal, times a log-normal that
ranks share, as gradients of layers are: a block's largest is far above most others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ina.protocol.coding import CODINGS, MOST_WORKERS, Coding, exact_below
from ina.testing import packed
from ina.testing.numerics import Array, exact_result

_SPREAD = 2.0
"""Of the log-normal."""
_SIDE = 32
_REACH = 3.0
"""As :mod:`ina.torch.lowbit` has it."""


@dataclass(frozen=True)
class RoundingRow:
    """One way of one number of workers."""

    workers: int
    way: str
    """bf16: a chain of additions, as Gloo's ring does; a wire; or 8 turned, as the hook does."""
    error: float
    """Relative squared error of the sum, all seeds."""


def gradients(workers: int, elems: int, seed: int) -> list[Array]:
    """One of each rank's."""
    rng = np.random.default_rng(seed)
    sizes = np.exp(_SPREAD * rng.standard_normal(elems))
    return [(rng.standard_normal(elems) * sizes).astype(np.float32) for _ in range(workers)]


def measure(workers: int, elems: int, words: int, seeds: int) -> list[RoundingRow]:
    """All ways that so many workers may take; ``words``: of a packet."""
    ways: dict[str, Callable[[Sequence[Array]], Array]] = {"bf16": _bf16_chain}
    for name, coding in CODINGS.items():
        if workers <= MOST_WORKERS[coding.bits]:
            ways[name] = partial(_as_it_travels, words=words, coding=coding)
    if workers <= MOST_WORKERS[8]:
        ways["8 turned"] = _turned
    off, of = dict.fromkeys(ways, 0.0), 0.0
    for seed in range(seeds):
        parts = gradients(workers, elems, seed)
        exact = exact_result(parts, "sum")
        of += float(np.square(exact).sum())
        for name, way in ways.items():
            off[name] += float(np.square(way(parts) - exact).sum())
    return [RoundingRow(workers, name, off[name] / of) for name in ways]


def _as_it_travels(parts: Sequence[Array], *, words: int, coding: Coding) -> Array:
    return packed.all_reduce(parts, "sum", words, coding)


def _bf16_chain(parts: Sequence[Array]) -> Array:
    total = parts[0].astype(ml_dtypes.bfloat16)
    for part in parts[1:]:
        total = total + part.astype(ml_dtypes.bfloat16)
    return total.astype(np.float64)


def _turned(parts: Sequence[Array]) -> NDArray[np.float64]:
    """Without feedback, which is of several steps."""
    block, limit = _SIDE * _SIDE, exact_below(8, len(parts)) - 1
    rng = np.random.default_rng(1)
    signs = rng.choice([-1.0, 1.0], block)
    rows = -(-parts[0].size // block)
    padded = np.zeros((len(parts), rows * block))
    for row, part in zip(padded, parts, strict=True):
        row[: part.size] = part
    turned = _turn(padded.reshape(len(parts), rows, block) * signs)
    reach = _REACH * np.sqrt(np.square(turned).mean(axis=2)).mean(axis=0)
    steps = np.where(reach > 0, reach / limit, 1.0)[:, None]
    integers = np.clip(np.floor(turned / steps + rng.random(turned.shape)), -limit, limit)
    found: NDArray[np.float64] = (_turn(integers.sum(axis=0) * steps) * signs).reshape(-1)
    return found[: parts[0].size]


def _turn(blocks: NDArray[np.float64]) -> NDArray[np.float64]:
    side = np.ones((1, 1))
    while side.shape[0] < _SIDE:
        side = np.block([[side, side], [side, -side]])
    side /= np.sqrt(_SIDE)
    square = blocks.reshape(*blocks.shape[:-1], _SIDE, _SIDE)
    found: NDArray[np.float64] = (side @ square @ side).reshape(blocks.shape)
    return found
